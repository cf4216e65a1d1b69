"""kill -9 of a driver at any of its operations on files, in forks of this process.

    while killed(lambda: finish(job()), at=chance.randint(1, 80)):
        ...  # another driver takes over, and is killed somewhere else

A fork costs milliseconds, where a process of its own would import everything again. It inherits this process as it is:
load kernels (`skypane.kernels.warm()`) and set `pyarrow.set_cpu_count(1)` before, since threads do not survive a fork.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from skypane.runtime.kernels_ahead import await_loaded
from skypane.runtime.spark.document_store import DocumentStore

Moment: TypeAlias = Literal["before", "half", "after"]

OPERATIONS: Final = ("open_output", "move", "remove", "remove_folder", "sync", "write_parquet", "clear", "make")
"""The operations of a checkpoint and of folders of answers that are counted."""
_FAILED: Final = 1


@dataclass(frozen=True)
class Bomb:
    """At which operation, "before", "half" (of what is written) or "after" it, and which signal then."""

    at: int
    when: Moment
    signal: int = signal.SIGKILL

    def go_off(self) -> None:
        """Send this process the signal."""
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


def killed(run: Callable[[], object], at: int, when: Moment = "before") -> bool:
    """Run a driver in a fork, which is killed at its operation number `at` on files; return whether it was.

    when   "before" or "after" the operation, or when "half" of a file is written

    Returns False if the driver has come to its end before. Raises AssertionError if it has failed; its trace is on the
    standard error.
    """
    child = fork(run, Bomb(at, when))
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in {0, -signal.SIGKILL}, f"a driver has ended with {code}; its trace is on the standard error"  # noqa: S101
    return code != 0


def fork(run: Callable[[], object], bomb: Bomb | None = None, codes: Callable[[Exception], int] | None = None) -> int:
    """Run a driver in a fork of this process; return its process id.

    codes   returns the exit status for an error that may come, and shall not be shown
    """
    await_loaded()
    sys.stderr.flush()
    if child := os.fork():
        return child
    code = _FAILED
    try:
        if bomb is not None:
            bomb.lay()
        run()
        code = 0
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process ends here
        code = codes(error) if codes is not None and isinstance(error, Exception) else _FAILED
        if code == _FAILED:
            traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
