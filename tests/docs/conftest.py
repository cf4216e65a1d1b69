"""The site, built once, for all tests that look at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import ROOT


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        "-m",
        "sphinx",
        "--quiet",
        "--fail-on-warning",
        "--keep-going",
        "--doctree-dir",
        str(folder / "doctrees"),
    ]
    done = subprocess.run(
        [sys.executable, *command, ROOT / "docs", folder / "html"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"
