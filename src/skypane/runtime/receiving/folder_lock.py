"""Lock of a folder for one receiver at a time; the kernel releases it when the process ends, even after a kill."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from skypane.types import ConfigError

_HELD = ".receiver"


class FolderLock:
    """Locks a folder, which is created if missing; raises ConfigError, with the holder's process, if it is locked."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(folder / _HELD, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = os.pread(self._file, 100, 0).decode(errors="replace").strip() or "unknown"
            self.release()
            raise ConfigError(
                f"{folder} is locked by another receiver (process {who}); stop that one, or use another folder"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Unlock the folder; repeated calls do nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
