"""Resources of this process: cores, memory (with the limits of containers), a cache folder, and where it imports from."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class _Hierarchy:
    """Paths and file names of memory information in one version of cgroups.

    controller   the name before the path of a process's group in /proc/self/cgroup
    cached       the key in its statistics for pages of files that can be reclaimed
    """

    root: Path
    controller: str
    limit: str
    usage: str
    cached: str


_HIERARCHIES = (
    _Hierarchy(Path("/sys/fs/cgroup"), "", "memory.max", "memory.current", "inactive_file"),
    _Hierarchy(
        Path("/sys/fs/cgroup/memory"), "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
    ),
)
_OWN_GROUPS = Path("/proc/self/cgroup")


def cores() -> int:
    """Return the number of cores on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the memory of the machine, or of the container if that is less."""
    return min([_physical(), *_container_limits()])


def available_memory_bytes() -> int | None:
    """Return the memory available without swapping, or None if the system does not report it."""
    return _numbers(Path("/proc/meminfo")).get("MemAvailable")


def room_bytes() -> int | None:
    """Return the memory that this process can still allocate, or None if the system does not report it.

    This is the minimum of the machine's available memory including swap, the rest of the container's limit, and the
    rest of a limit on this process, such as Spark's spark.executor.pyspark.memory.
    """
    rooms = [*_machine_room(), *_container_room(), *_own_room()]
    return min(rooms, default=None)


def import_path() -> str:
    """Return the folders from which this process imports, as the variable PYTHONPATH of one that it starts."""
    return os.pathsep.join(path for path in sys.path if path)


def cache_directory() -> Path:
    """Return the folder for files kept between runs: SKYPANE_CACHE, or skypane in the user's cache directory."""
    if own := os.environ.get("SKYPANE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "skypane"


def _machine_room() -> list[int]:
    numbers = _numbers(Path("/proc/meminfo"))
    return [numbers["MemAvailable"] + numbers.get("SwapFree", 0)] if "MemAvailable" in numbers else []


def _container_room() -> list[int]:
    """Return the rest of each limit below the machine's memory; pages of files count as free."""
    rooms = []
    for hierarchy, group, most in _limited_groups():
        if most >= _physical():
            continue
        try:
            used = int((group / hierarchy.usage).read_text(encoding="ascii"))
            lines = (group / "memory.stat").read_text(encoding="ascii").splitlines()
        except (OSError, ValueError):
            continue
        back = next((int(line.split()[1]) for line in lines if line.startswith(f"{hierarchy.cached} ")), 0)
        rooms.append(most - used + back)
    return rooms


def _own_room() -> list[int]:
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    mapped = _numbers(Path("/proc/self/status")).get("VmSize")
    return [] if most == resource.RLIM_INFINITY or mapped is None else [most - mapped]


def _numbers(file: Path) -> dict[str, int]:
    """Return the byte counts in a file of /proc by name, as in "MemFree:  12 kB"; empty without such a file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    entries = (line.split() for line in lines if line.endswith(" kB"))
    return {words[0].removesuffix(":"): int(words[1]) * 1024 for words in entries}


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_limits() -> list[int]:
    return [most for _, _, most in _limited_groups()]


def _limited_groups() -> Iterator[tuple[_Hierarchy, Path, int]]:
    """Yield each group of this process that has a limit, with the limit; parent groups are included."""
    for hierarchy, folder in _groups():
        if (most := _limit(folder / hierarchy.limit)) is not None:
            yield hierarchy, folder, most


@cache
def _groups() -> tuple[tuple[_Hierarchy, Path], ...]:
    """Return the groups of this process; cached, because it does not change groups while it runs.

    A container may see its own group as the root, whatever its path says, so paths that do not exist are skipped.
    """
    paths = ((hierarchy, own_group(hierarchy.controller)) for hierarchy in _HIERARCHIES)
    folders = (
        (hierarchy, hierarchy.root / group)
        for hierarchy, path in paths
        for group in dict.fromkeys([path, *path.parents])
    )
    return tuple((hierarchy, folder) for hierarchy, folder in folders if (folder / hierarchy.limit).exists())


def own_group(controller: str) -> Path:
    """Return the path of this process's group below the root of a controller's hierarchy; "." if it is unknown."""
    try:
        lines = _OWN_GROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return Path()
    entries = (line.split(":", 2) for line in lines)
    return next((Path(path.lstrip("/")) for _, names, path in entries if controller in names.split(",")), Path())


def _limit(file: Path) -> int | None:
    """Return the limit in a container's file; None without such a file or without a limit."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" means no limit
