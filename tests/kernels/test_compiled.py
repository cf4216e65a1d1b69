from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest

from skypane.kernels import compiled, sort_filter


def test_a_kernel_without_a_place_to_cache_is_compiled_all_the_same(monkeypatch):
    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("no locator available")
        return numba.njit(**options)

    monkeypatch.setattr(compiled, "njit", njit)
    monkeypatch.setattr(compiled, "UNCACHED", [])
    assert compiled.kernel(lambda x: x + 1)(2) == 3
    assert len(compiled.UNCACHED) == 1


def test_the_cache_is_stamped_with_every_source_of_the_package():
    scan: Any = sort_filter._skyline
    names = [name for name, *_ in scan._cache._cache_file._source_stamp]
    assert {"simd.py", "nested_loops.py", "sort_filter.py"} <= set(names)


def test_a_numba_without_that_stamp_is_accepted():
    compiled._stamp_with_all_sources(SimpleNamespace(), Path())


POINTS = """
from typing import NamedTuple
from skypane.kernels.compiled import kernel

class {name}(NamedTuple):
    x: float

@kernel
def doubled(point):
    return 2 * point.x

print(doubled({name}(1.5)))
"""


@pytest.mark.long
def test_cached_code_whose_classes_are_gone_is_compiled_again(tmp_path: Path):
    """As after an upgrade in which a named tuple got another name: Numba reads the old index before it looks at its stamp."""
    module = tmp_path / "points.py"
    for name in ("Point", "Place"):
        module.write_text(POINTS.format(name=name))
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path()}
        done = subprocess.run(
            [sys.executable, "-c", "import points"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == "3.0\n", done.stderr
    assert list((tmp_path / "cache").rglob("points.doubled*.nbi"))


def path() -> str:
    return os.pathsep.join(entry for entry in sys.path if entry)
