"""A run of pytest over a small project, which shows what a plugin of these tests does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.checkout import PYTHONPATH


def pytest_of(
    project: Path, *arguments: str, processes: str = "0", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder without a plugin but xdist, in pytest's own process or in so many others."""
    own = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    alone = {"PYTHONPATH": PYTHONPATH, "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "no:cacheprovider", f"--rootdir={project}"]
    return subprocess.run(
        [*command, "-n", processes, *arguments],
        cwd=project, env=own | alone | dict(environment or {}), capture_output=True, text=True, check=False,
    )  # fmt: skip
