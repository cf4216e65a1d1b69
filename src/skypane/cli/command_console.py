"""The console on which commands write tables and lines: what a text says is data, and no markup."""

from __future__ import annotations

import errno
import os
from typing import Any

from rich.console import Console
from rich.text import Text

from skypane.naming import printable


class CommandConsole(Console):
    """A console that raises BrokenPipeError if nobody reads its output, as print() does; rich itself ends the process."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, stderr=stderr)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
