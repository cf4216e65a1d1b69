"""What this machine lends to one process: cores, memory (container limits included), a folder for files."""

from __future__ import annotations

import os
import resource
from pathlib import Path

GIB = 1 << 30

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
#: of a container: its limit, what it uses, and of that the pages of files that can be had back, by their name
_CGROUPS = tuple(
    (limit, limit.with_name(usage), limit.with_name("memory.stat"), cached)
    for limit, usage, cached in zip(
        _CGROUP_LIMITS,
        ("memory.current", "memory.usage_in_bytes"),
        ("inactive_file", "total_inactive_file"),
        strict=True,
    )
)


def cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the memory of the machine, or of the container if that is less."""
    return min([_physical(), *_container_limits()])


def available_memory_bytes() -> int | None:
    """Return the memory that can be had without swapping, or None where the system does not tell."""
    return _told(Path("/proc/meminfo")).get("MemAvailable")


def room_bytes() -> int | None:
    """Return the memory that this process can still have, or None where the system does not tell.

    The least of what the machine can give (swap with it), what is left of the container's limit, and what is left of a
    limit on this process, such as Spark sets by spark.executor.pyspark.memory.
    """
    rooms = [*_machine_room(), *_container_room(), *_own_room()]
    return min(rooms, default=None)


def cache_directory() -> Path:
    """Return where skypane may keep files between runs: SKYPANE_CACHE, or the user's cache directory."""
    if own := os.environ.get("SKYPANE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "skypane"


def _machine_room() -> list[int]:
    told = _told(Path("/proc/meminfo"))
    return [told["MemAvailable"] + told.get("SwapFree", 0)] if "MemAvailable" in told else []


def _container_room() -> list[int]:
    """What is left of the limit, if there is one below the machine's memory; pages of files can be had back."""
    rooms = []
    for limit, usage, statistics, cached in _CGROUPS:
        most = _limit(limit)
        if most is None or most >= _physical():
            continue
        try:
            used = int(usage.read_text(encoding="ascii"))
            lines = statistics.read_text(encoding="ascii").splitlines()
        except (OSError, ValueError):
            continue
        back = next((int(line.split()[1]) for line in lines if line.startswith(f"{cached} ")), 0)
        rooms.append(most - used + back)
    return rooms


def _own_room() -> list[int]:
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    mapped = _told(Path("/proc/self/status")).get("VmSize")
    return [] if most == resource.RLIM_INFINITY or mapped is None else [most - mapped]


def _told(file: Path) -> dict[str, int]:
    """Return the numbers of bytes that a file of /proc tells by name, "MemFree:  12 kB"; none where there is no such file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    told = (line.split() for line in lines if line.endswith(" kB"))
    return {words[0].removesuffix(":"): int(words[1]) * 1024 for words in told}


def _physical() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_limits() -> list[int]:
    return [most for file in _CGROUP_LIMITS if (most := _limit(file)) is not None]


def _limit(file: Path) -> int | None:
    """Return the limit that a container's file says, None where there is no such file, or no limit."""
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" means no limit
