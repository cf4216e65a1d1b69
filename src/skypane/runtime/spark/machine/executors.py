"""Spark's dynamic allocation, with which the number of a cluster's executors follows the number of tasks."""

from __future__ import annotations

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

Lookup = Callable[[str], str | None]
"""Maps the name of a setting to its value, or to None if it is not set."""


def workers_are_threads(lookup: Lookup) -> bool:
    """Return whether Spark's workers are threads of the driver's process and share its cores."""
    master = lookup("spark.master") or "local"
    return master.startswith("local") and not master.startswith("local-cluster")


def following(lookup: Lookup) -> tuple[bool, str]:
    """Return whether executors follow the workers that elastic= sets, and one line with the details or the reason."""
    master = lookup("spark.master") or "local"
    if workers_are_threads(lookup):
        return True, f"{master}: workers are threads of one process, whose cores they share; there are no executors"
    if lookup("spark.dynamicAllocation.enabled") != "true":
        return False, f"{master}: the number of executors is fixed, whatever elastic= decides"
    bounds = [lookup(f"spark.dynamicAllocation.{end}Executors") for end in ("min", "max")]
    idle = lookup("spark.dynamicAllocation.executorIdleTimeout") or "60s"
    whole = master.startswith("spark:") and lookup("spark.executor.cores") is None
    return True, (
        f"{master}: executors follow, from {bounds[0] or 0} to {bounds[1] or 'any number'} "
        f"(spark.dynamicAllocation.minExecutors, maxExecutors); one without tasks for {idle} is removed "
        f"(executorIdleTimeout), if the trigger leaves it idle that long{_WHOLE if whole else ''}"
    )
