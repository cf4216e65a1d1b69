"""The machine of a run and its versions, and whether it is quiet: how much of its CPU time other programs use."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Self

from skypane.runtime.machine_costs import processor
from skypane.runtime.resources import GIB, cores, memory_bytes
from skypane.runtime.spark.machine.java import JavaError, find_java

PACKAGES: Final = (
    "skypane",
    "pyspark",
    "pyarrow",
    "numpy",
    "numba",
    "pandas",
    "duckdb",
    "polars",
    "moocore",
    "paretoset",
)
"""Packages whose versions a run keeps."""

OTHERS: Final = 0.05
STEAL: Final = 0.02
"""Shares of the machine's CPU time above which it is not quiet: of other programs, and of other guests of its host."""
LOOK: Final = 5.0
"""Seconds for which a machine is observed before a run."""
CORES: Final = 2
"""Cores that benchmarks use, whatever the machine has: the figures of docs/ are those of two."""

_STAT: Final = Path("/proc/stat")


def this() -> dict[str, str]:
    """Return the machine: processor, cores that benchmarks use and how many there are, memory, system."""
    mine, there = min(CORES, cores()), os.cpu_count() or 1
    return {
        "processor": processor(),
        "cores": f"{mine} cores" if mine == there else f"{mine} of {there} cores",
        "memory": f"{memory_bytes() / GIB:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, Java and the packages that are installed."""
    try:
        java = find_java().version
    except JavaError:
        java = "none"
    found = {"python": platform.python_version(), "java": java}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit(checkout: Path, but: Sequence[str] = ()) -> str:
    """Return the commit of a checkout, "-dirty" after it if a file is changed that is not in `but`; nothing where git knows none."""
    git = shutil.which("git")
    if git is None or not (checkout / ".git").exists():
        return ""
    command = [git, "-C", str(checkout)]
    named = subprocess.run([*command, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603
    if named.returncode:
        return ""
    paths = [".", *(f":(exclude){path}" for path in but)]
    changed = subprocess.run([*command, "diff", "--quiet", "HEAD", "--", *paths], capture_output=True, check=False)  # noqa: S603
    return named.stdout.strip() + ("-dirty" if changed.returncode else "")


_TICKS: Final = os.sysconf("SC_CLK_TCK")


def has_clocks(stat: Path = _STAT) -> bool:
    """Return whether the system reports CPU times as Linux does, of the machine and of each process."""
    return stat.exists()


@dataclass(frozen=True, slots=True)
class Clock:
    """CPU seconds of the machine since it started: in use, taken by other guests of its host, and of all its CPUs."""

    busy: float
    steal: float
    whole: float

    @classmethod
    def now(cls, stat: Path = _STAT) -> Self:
        """Return the seconds so far; zeros where the system does not report them."""
        try:
            line = stat.read_text(encoding="ascii").partition("\n")[0].split()[1:]
        except OSError:
            return cls(0.0, 0.0, 0.0)
        user, nice, system, idle, waiting, hard, soft, steal = (int(field) / _TICKS for field in line[:8])
        busy = user + nice + system + hard + soft
        return cls(busy, steal, busy + steal + idle + waiting)


@dataclass(frozen=True, slots=True)
class Use:
    """Shares of the machine's CPU time in a span: of other programs, and of other guests of the host."""

    others: float
    steal: float

    @classmethod
    def between(cls, before: Clock, after: Clock, own: float) -> Self:
        """Return the use between two clocks, of which `own` CPU seconds were those of the programs that are measured."""
        whole = after.whole - before.whole
        if whole <= 0:
            return cls(0.0, 0.0)
        others = max(0.0, after.busy - before.busy - own)
        return cls(others / whole, (after.steal - before.steal) / whole)

    @property
    def why_not(self) -> str:
        """Why figures of that span are not those of a quiet machine; nothing if they are."""
        return "; ".join(
            f"{what} had {share:.0%} of the CPU time, more than {bound:.0%}"
            for what, share, bound in (
                ("other programs", self.others, OTHERS),
                ("other guests of the host", self.steal, STEAL),
            )
            if share > bound
        )


def look(seconds: float = LOOK, wait: Callable[[float], None] = time.sleep) -> Use:
    """Observe the machine for so many seconds while nothing is measured."""
    before, own = Clock.now(), time.process_time()
    wait(seconds)
    return Use.between(before, Clock.now(), time.process_time() - own)


def load() -> float:
    """Return the mean number of programs that ran or waited in the last minute, for each core."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)
