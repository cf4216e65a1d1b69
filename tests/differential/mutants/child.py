"""What a process does that tries one mutant: it begins where others are imported already, and knows nothing of ours yet."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

PRELOADED = ["numba", "numpy", "pandas", "pyarrow.compute", "pyarrow.parquet"]
"""What most of a start is spent on, and what no mutant is in."""


def tried(run: Sequence[str], sources: Path, folder: Path, output: Path) -> None:
    """Run a module with its arguments, with skypane from `sources` and the tests of `folder`; what it says goes to a file."""
    with output.open("wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "skypane")]:
        del sys.modules[name]
    sys.path[0:0] = [str(sources), str(folder)]
    os.chdir(folder)
    module, *arguments = run
    sys.argv = [module, *arguments]
    sys.exit(importlib.import_module(module).main())
