"""The console on which commands write tables and coloured lines."""

from __future__ import annotations

import errno
import os

from rich.console import Console


class CommandConsole(Console):
    """A console that raises BrokenPipeError if nobody reads its output, as print() does; rich itself ends the process."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(highlight=False, stderr=stderr)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
