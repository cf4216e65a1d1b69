from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba

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


def test_another_numba_without_that_stamp_is_no_error():
    compiled._stamp_with_all_sources(SimpleNamespace(), Path())
