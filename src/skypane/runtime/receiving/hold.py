"""One receiver at a time in a folder: the kernel holds it for a process, and lets go when that dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from skypane.types import ConfigError

_HELD = ".receiver"


class Hold:
    """Takes a folder, which is made if it is not there; ConfigError, with who has it, if it is taken."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(folder / _HELD, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = os.pread(self._file, 100, 0).decode(errors="replace").strip() or "unknown"
            self.release()
            raise ConfigError(
                f"{folder} is held by another receiver (process {who}): stop that one, or name another folder"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let go of the folder; nothing if that was done."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
