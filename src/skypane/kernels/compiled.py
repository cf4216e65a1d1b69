"""The compilation of kernels: on first use, for the array types of the call, without the GIL, cached on disk.

Kernels have no parallel loops (a forked worker must not start OpenMP after its parent did) and no fastmath (it folds
`x != x`, the test for NaN, to false).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache, partial
from hashlib import blake2b
from itertools import count
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, ParamSpec, TypeVar

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from skypane.kernels.turns import turn

_P = ParamSpec("_P")
_R = TypeVar("_R")

UNCACHED: Final[list[str]] = []
"""Names of the kernels that are not cached on disk, because no cache directory is writable."""

CACHED: Final[list[Any]] = []
"""The kernels that have a place in a cache on disk, of all modules that are imported, whether they are compiled or not."""

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


def lacking(modules: Collection[str]) -> list[str]:
    """Return the names of the kernels of these modules, which are imported, of which no code for this processor is cached."""
    return [each.py_func.__qualname__ for each in CACHED if each.py_func.__module__ in modules and not _is_cached(each)]


def _is_cached(compiled: Any) -> bool:
    """Return whether Numba's index has an entry of the kernel, which then was compiled for some array types at least."""
    processor = compiled.targetctx.codegen().magic_tuple()
    return any(key[1] == processor for key in compiled._cache._cache_file._load_index())  # noqa: SLF001


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
    cached. It also writes its index before the code, so a process that is killed in between would leave an index of the new
    text with the code of the old one. Numba has no public API for this; if these attributes disappear, its default applies
    again.
    """
    file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if file is not None and hasattr(file, "_source_stamp"):
        file._source_stamp = _stamp(package)  # noqa: SLF001
        file._load_index = _readable(file._load_index)  # noqa: SLF001
        file.save = partial(_save_code_first, file)
        compiled.compile = _in_turn(compiled, compiled._cache, file)  # noqa: SLF001
        CACHED.append(compiled)


def _in_turn(compiled: Any, cached: Any, file: Any) -> Callable[[Any], Any]:
    """Wrap the kernel's function that loads it, or compiles and saves it: the latter one process after the other, see turns.py.

    Saved code is loaded without a turn, so that no process waits for another one that is suspended while it loads.
    """
    load_or_compile, folder, name = compiled.compile, cached.cache_path, file._index_name  # noqa: SLF001

    def compile_in_turn(signature: Any) -> Any:
        # First Numba's lock of this process, which its compiler takes too: threads that took the two in another order
        # would wait for each other.
        with global_compiler_lock:
            if cached._index_key(signature, compiled.targetctx.codegen()) in file._load_index():  # noqa: SLF001
                return load_or_compile(signature)
            with turn(folder, name):
                return load_or_compile(signature)

    return compile_in_turn


def _save_code_first(file: Any, key: Any, data: Any) -> None:
    """Save the code of a signature, then the index that names it; the arguments are those of Numba's own method."""
    overloads = file._load_index()  # noqa: SLF001
    taken = set(overloads.values())
    name = overloads.get(key) or next(name for name in map(file._data_name, count(1)) if name not in taken)  # noqa: SLF001
    file._save_data(name, data)  # noqa: SLF001
    if key not in overloads:
        file._save_index({**overloads, key: name})  # noqa: SLF001


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
