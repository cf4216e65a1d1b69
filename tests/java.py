"""Java in tests: with which options one starts that lives for minutes, as there are many of them, and how one ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession
from tests.checkout import ROOT

from skypane.runtime.spark.machine.checkpoint_files import MANAGER, manager_of

FRUGAL: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""To compile well would cost more than it saves."""
QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
"""What an archive cannot be used for is not news to who reads the output of tests."""
_FOLDER: Final = ROOT / ".pytest_cache" / "java"


def options(folder: Path | None = None) -> str:
    """Return the options of a short life, and the archive of Spark's classes, if `python -m tests.java_archive` has made one.

    folder  where Java's temporary files go; where Python's do, if it is not given
    """
    archive, frugal = place(), f"{FRUGAL} -Djava.io.tmpdir={folder or tempfile.gettempdir()}"  # Java ignores TMPDIR
    return f'{frugal} {QUIET} "-XX:SharedArchiveFile={archive}"' if archive.exists() else frugal


def inside_java() -> dict[str, str]:
    """Return the setting with which Spark starts fewer programs for its own files: those of file sources' logs, too.

    A stream of ours sets it while it starts, which is before Spark makes the logs of its sources.
    """
    manager = manager_of(pyspark.__version__)
    return {} if manager is None else {MANAGER: manager}


def place() -> Path:
    """Return where the archive of this Java and this Spark lies."""
    home = os.environ.get("JAVA_HOME")
    java = Path((f"{home}/bin/java" if home else shutil.which("java")) or "").resolve()
    changed = java.stat().st_mtime_ns if java.is_file() else 0
    key = f"{java} {changed} {pyspark.__version__} {pyspark.__file__}"
    return _FOLDER / f"{sha256(key.encode()).hexdigest()[:16]}.jsa"


def end(spark: SparkSession) -> None:
    """Stop a session and its Java, which else lives as long as this process does, with its files and ports."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()  # type: ignore[union-attr]
    gateway.proc.stdin.close()  # type: ignore[union-attr]
    gateway.proc.wait()  # type: ignore[union-attr]
