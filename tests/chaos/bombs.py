"""Drivers in processes of their own, which end, or stand still, at a file operation of a number."""

from __future__ import annotations

import io
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.chaos.driver import Stream, drive

from skypane.runtime.spark.document_store import DocumentStore
from skypane.types import CheckpointError

OPERATIONS: Final = ("open_output", "move", "remove", "remove_folder", "sync", "write_parquet", "clear", "make")
DONE, TAKEN_OVER, WRONG = 0, 3, 4


@dataclass(frozen=True)
class Bomb:
    """At which operation, "before", "half" (of what is written) or "after" it, and which signal then."""

    at: int
    when: str
    signal: int = signal.SIGKILL

    def go_off(self) -> None:
        os.kill(os.getpid(), self.signal)

    def lay(self) -> None:
        """Let this process count its operations on files, and get the signal at one."""
        left = [self.at]
        for name in OPERATIONS:
            setattr(DocumentStore, name, self._counted(getattr(DocumentStore, name), left))

    def _counted(self, operation: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            is_now = left[0] == 0
            if is_now and self.when == "before":
                self.go_off()
            result = operation(*arguments, **options)
            if is_now and self.when == "half" and operation.__name__ == "open_output":
                return _Half(result, self)
            if is_now and self.when != "before":
                self.go_off()
            return result

        return counted


class _Half(io.BytesIO):
    """A file that gets half of what is first written to it, then the signal."""

    def __init__(self, file: Any, bomb: Bomb) -> None:
        super().__init__()
        self._file, self._bomb = file, bomb
        self._begun = False

    def write(self, content: Any) -> int:
        whole = bytes(memoryview(content))
        half = 0 if self._begun else len(whole) // 2
        self._file.write(whole[:half])
        self._file.flush()
        if not self._begun:  # who stands still there, and goes on, writes the rest
            self._begun = True
            self._bomb.go_off()
        self._file.write(whole[half:])
        return len(whole)

    def close(self) -> None:
        self._file.close()


def start(stream: Stream, seed: int, bomb: Bomb | None = None) -> int:
    """Start a driver; return its process id."""
    child = os.fork()
    if child:
        return child
    code = WRONG
    try:
        if bomb is not None:
            bomb.lay()
        drive(stream, random.Random(seed))
        code = DONE
    except CheckpointError as error:
        code = TAKEN_OVER if "taken it over" in str(error) else WRONG
        if code == WRONG:
            traceback.print_exc()
    except BaseException:  # noqa: BLE001 - whatever it is, this process ends here
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    """Return how a driver has ended, or minus the signal that ended it or has it stand still."""
    _, status = os.waitpid(child, os.WUNTRACED)
    return -os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
