"""The output of commands: texts as they are, with control characters as escapes, because others have written some of them."""

from __future__ import annotations

import sys
from typing import TextIO

from skypane.naming import printable


def say(text: object, *, end: str = "\n", file: TextIO | None = None) -> None:
    """Write a text to the standard output, or another one, at once."""
    print(printable(str(text)), end=end, file=file or sys.stdout, flush=True)
