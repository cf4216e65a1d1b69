"""The checkout that the tests run in, and what a process that a test starts imports from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PATHS: Final = (ROOT / "src", ROOT)
PYTHONPATH: Final = os.pathsep.join(map(str, PATHS))
"""For the environment of such a process: it finds `skypane` and `tests` here, whatever its working directory is."""
