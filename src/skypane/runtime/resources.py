"""What this machine lends to one process: cores, memory (container limits included), a folder for files."""

from __future__ import annotations

import os
from pathlib import Path

GIB = 1 << 30

_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the memory of the machine, or of the container if that is less."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_container_limits()])


def available_memory_bytes() -> int | None:
    """Return the memory that can be had without swapping, or None where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def cache_directory() -> Path:
    """Return where skypane may keep files between runs: SKYPANE_CACHE, or the user's cache directory."""
    if own := os.environ.get("SKYPANE_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "skypane"


def _container_limits() -> list[int]:
    limits = []
    for file in _CGROUP_LIMITS:
        try:
            text = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():  # "max" means no limit
            limits.append(int(text))
    return limits
