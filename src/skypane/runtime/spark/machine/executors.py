"""How the number of a cluster's executors follows the number of workers: by requests, or by Spark's dynamic allocation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

FOLLOWING: Final[Mapping[str, str]] = {
    "spark.dynamicAllocation.enabled": "true",
    # Without an external shuffle service, Spark keeps executors that hold files of a shuffle in use.
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    # With Spark's default, infinity, an executor would stay after an exchange until Java happens to collect garbage.
    "spark.dynamicAllocation.shuffleTracking.timeout": "60s",
}
"""Settings that add executors when tasks wait and remove idle ones; they must be in the session's conf at its start."""

FOLLOWING_OPTIONS: Final = " ".join(f"--conf {name}={value}" for name, value in FOLLOWING.items())
"""The same settings as options of spark-submit."""

_WHOLE: Final = "; without spark.executor.cores each takes all the cores of a machine, so there may be only one"

_LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*\d+\s*,\s*(\d+)\s*,.*")

Lookup = Callable[[str], str | None]
"""Maps the name of a setting to its value, or to None if it is not set."""


def workers_are_threads(lookup: Lookup) -> bool:
    """Return whether Spark's workers are threads of the driver's process and share its cores."""
    master = lookup("spark.master") or "local"
    return master.startswith("local") and not master.startswith("local-cluster")


def allocated(lookup: Lookup) -> bool:
    """Return whether Spark's dynamic allocation sets the number of executors; it refuses requests of others."""
    return lookup("spark.dynamicAllocation.enabled") == "true"


def slots_of(lookup: Lookup) -> int:
    """Return how many tasks an executor runs at once, as far as settings say: 1 if they say nothing."""
    local = _LOCAL_CLUSTER.fullmatch(lookup("spark.master") or "")
    cores = int(lookup("spark.executor.cores") or (local[1] if local else 1))
    return max(1, cores // int(lookup("spark.task.cpus") or 1))


def following(lookup: Lookup) -> tuple[bool, str]:
    """Return whether executors follow the workers that elastic= sets, and one line with the details or the reason."""
    master = lookup("spark.master") or "local"
    if workers_are_threads(lookup):
        return True, f"{master}: workers are threads of one process, whose cores they share; there are no executors"
    whole = _WHOLE if master.startswith("spark:") and lookup("spark.executor.cores") is None else ""
    if not allocated(lookup):
        return False, (
            f'{master}: executors follow a query with elastic= and executors="follow"; for all others, their number is '
            f"fixed{whole}"
        )
    bounds = [lookup(f"spark.dynamicAllocation.{end}Executors") for end in ("min", "max")]
    return True, (
        f"{master}: executors follow, from {bounds[0] or 0} to {bounds[1] or 'any number'} "
        f"(spark.dynamicAllocation.minExecutors, maxExecutors); {_removal(lookup)}{whole}"
    )


def _removal(lookup: Lookup) -> str:
    """Return in words when dynamic allocation removes an executor, and what a stream needs for that."""
    idle = lookup("spark.dynamicAllocation.executorIdleTimeout") or "60s"
    removal = f"one without tasks for {idle} is removed (executorIdleTimeout)"
    if lookup("spark.dynamicAllocation.shuffleTracking.enabled") != "false":
        shuffled = lookup("spark.dynamicAllocation.shuffleTracking.timeout")
        after = "is kept" if shuffled is None else f"after {shuffled}"
        removal += f", one with files of an exchange {after} (shuffleTracking.timeout)"
    return f"{removal}; a stream needs a trigger with a longer interval, as its batches give each executor a task"
