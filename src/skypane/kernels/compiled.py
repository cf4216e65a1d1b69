"""How every kernel is compiled: on first use, for the array types it meets, without the GIL, cached on disk.

No parallel loops (a forked worker must not start OpenMP after its parent did) and no fastmath (it folds `x != x`, the
test for NaN, to false).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from numba import njit

_P = ParamSpec("_P")
_R = TypeVar("_R")

UNCACHED: Final[list[str]] = []
"""Kernels for which there was no place to cache them."""

_KERNELS: Final = Path(__file__).parent


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a small function that is compiled into its callers: a call costs two counts for each array passed."""
    compiled: Callable[_P, _R] = njit(inline="always")(function)
    return compiled


def kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function that Numba compiles."""
    try:
        compiled: Any = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no directory that Numba may write to: compile in each process, better than not at all
        UNCACHED.append(function.__qualname__)
        compiled = njit(nogil=True)(function)
    _stamp_with_all_sources(compiled, Path(function.__code__.co_filename).parent)
    return compiled  # type: ignore[no-any-return]


@cache
def _stamp(package: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when a file of the kernels, or of the package, does."""
    files = sorted({*_KERNELS.glob("*.py"), *package.glob("*.py")})
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


def _stamp_with_all_sources(compiled: Any, package: Path) -> None:
    """Make Numba's cached code stale as soon as any file of the kernels, or of the function's package, changes.

    Numba itself looks at the file that defines the function only, and code inlined from another file would stay as it
    was. It has no public way to say so; if these attributes should go, its own rule is back.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None and hasattr(file, "_source_stamp"):
        file._source_stamp = _stamp(package)  # noqa: SLF001
