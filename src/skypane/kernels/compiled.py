"""The compilation of kernels: on first use, for the array types of the call, without the GIL, cached on disk.

Kernels have no parallel loops (a forked worker must not start OpenMP after its parent did) and no fastmath (it folds
`x != x`, the test for NaN, to false).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, ParamSpec, TypeVar

from numba import njit

_P = ParamSpec("_P")
_R = TypeVar("_R")

UNCACHED: Final[list[str]] = []
"""Names of the kernels that are not cached on disk, because no cache directory is writable."""

_KERNELS: Final = Path(__file__).parent


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a small function into its callers, which saves the two reference counts per array that a call costs."""
    compiled: Callable[_P, _R] = njit(inline="always")(function)
    return compiled


def kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function with Numba on first use, and cache it on disk if possible."""
    try:
        compiled: Any = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # Numba has no writable cache directory: compile in each process
        UNCACHED.append(function.__qualname__)
        compiled = njit(nogil=True)(function)
    _stamp_with_all_sources(compiled, Path(function.__code__.co_filename).parent)
    return compiled  # type: ignore[no-any-return]


@cache
def _stamp(package: Path) -> tuple[tuple[str, str], ...]:
    """Return name and digest of all files of the kernels and of the package.

    Digests, because an image or an archive keeps times to the second, or not at all: kernels that were compiled before
    it was packed would be compiled again wherever it is unpacked. A zip file has one digest, for all modules in it.
    """
    if not package.is_dir():
        packed = [path for path in (package, *package.parents) if path.is_file()]
        return tuple((path.name, _digest(path)) for path in packed)
    files = sorted({*_KERNELS.glob("*.py"), *package.glob("*.py")})
    return tuple((file.name, _digest(file)) for file in files)


def _digest(file: Path) -> str:
    return blake2b(file.read_bytes(), digest_size=16).hexdigest()


def _stamp_with_all_sources(compiled: Any, package: Path) -> None:
    """Invalidate Numba's cached code whenever the text of the kernels, or of the function's package, changes.

    By default Numba checks only the file that defines the function, so code inlined from another file would stay
    cached. Numba has no public API for this; if these attributes disappear, its default applies again.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None and hasattr(file, "_source_stamp"):
        file._source_stamp = _stamp(package)  # noqa: SLF001
        file._load_index = _readable(file._load_index)  # noqa: SLF001


def _readable(load_index: Callable[[], dict[Any, str]]) -> Callable[[], dict[Any, str]]:
    """Wrap a function that loads an index of cached code; an index that refers to missing classes counts as empty.

    Numba unpickles the index before it checks the stamp: after the renaming of a named tuple, that raises
    AttributeError.
    """

    def load() -> dict[Any, str]:
        try:
            return load_index()
        except (AttributeError, ImportError, EOFError, UnpicklingError):
            return {}

    return load
