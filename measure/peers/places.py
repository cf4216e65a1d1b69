"""Where the programs of others are, and what to do where they are not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
VARIABLE: Final = "SKYPANE_PEERS"


class MissingError(RuntimeError):
    """A program of others is not here; the message says what to put where."""


def folder() -> Path:
    """Return the folder of others' programs: that of the environment variable SKYPANE_PEERS, or build/peers."""
    return Path(os.environ.get(VARIABLE) or ROOT / "build" / "peers")


def shown(text: str) -> str:
    """Return a text about files with their places as a reader of the pages knows them: without the folders of this machine."""
    named = f"${VARIABLE}" if os.environ.get(VARIABLE) else "build/peers"
    return text.replace(str(folder()), named).replace(f"{ROOT}{os.sep}", "")


def wanted(file: Path, what: str) -> Path:
    """Return a file that must be there; raise MissingError with what to do otherwise."""
    if not file.exists():
        raise MissingError(shown(f"there is no {file}: {what}, or set {VARIABLE} to a folder that has it"))
    return file
