"""A small disk of its own for a campaign, that can be filled and emptied: a file system in memory, where one may be mounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

MEBIBYTE: Final = 1 << 20
SIZE: Final = 160 * MEBIBYTE
_TRIES: Final = 10


class Disk:
    """A disk at `root`, or a plain folder there, which is not filled, if this process may not mount."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "skypane-nature", str(root)]
        self.can_be_full = (
            shutil.which("mount") is not None
            and not subprocess.run(command, capture_output=True, check=False).returncode
        )
        self._ballast = root / "ballast"

    @property
    def is_full(self) -> bool:
        return self._ballast.exists()

    def fill(self, but: int) -> None:
        """Leave so many bytes, or less: others write meanwhile."""
        with self._ballast.open("wb") as file:
            for _ in range(_TRIES):
                with suppress(OSError):
                    os.posix_fallocate(file.fileno(), 0, max(shutil.disk_usage(self.root).free - but, 1))
                    return

    def empty(self) -> None:
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        self.empty()
        if self.can_be_full:
            subprocess.run(["umount", "-l", str(self.root)], check=True)  # noqa: S607 - where mount is, this is too
        shutil.rmtree(self.root, ignore_errors=True)
