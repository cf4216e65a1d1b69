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
    sphinx = [sys.executable, *"-m sphinx --quiet --fail-on-warning --keep-going --doctree-dir".split()]
    done = subprocess.run(
        [*sphinx, folder / "doctrees", ROOT / "docs", folder / "html"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"
