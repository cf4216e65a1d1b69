"""Clocks that go wrong and renames that take their time, for all programs that are started under it, while they run.

A small library of C comes before the C library in every process, Java too, and reads from a file that all of them map. What the
kernel notes itself, such as when a file was changed, stays true.
"""

from __future__ import annotations

import mmap
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final, Self

SOURCE: Final = Path(__file__).with_name("weather.c")
_FORM: Final = struct.Struct("=qq")


class Weather:
    """The weather of a campaign, whose files lie in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._library, self._file = folder / "weather.so", folder / "weather"
        self._file.write_bytes(_FORM.pack(0, 0))
        with self._file.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), _FORM.size)

    @classmethod
    def made(cls, folder: Path) -> Self | None:
        """Compile the library; None where there is no C compiler."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            return None
        made = cls(folder)
        subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", "-o", made._library, SOURCE, "-ldl"], check=True, capture_output=True
        )
        return made

    @property
    def environment(self) -> dict[str, str]:
        """What programs that are to feel it are started with."""
        return {"LD_PRELOAD": str(self._library), "NATURE_WEATHER": str(self._file)}

    def be(self, *, ahead: float = 0.0, slow: float = 0.0) -> None:
        """Let clocks be so many seconds ahead, and a rename take so many."""
        self._mapped[:] = _FORM.pack(int(ahead * 1e9), int(slow * 1e9))
