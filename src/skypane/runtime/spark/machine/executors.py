"""Whether a cluster's executors follow the number of tasks: by Spark's own dynamic allocation, in public settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

FOLLOWING: Final[Mapping[str, str]] = {
    "spark.dynamicAllocation.enabled": "true",
    # Without a shuffle service beside the executors, Spark keeps those that hold files of a shuffle that is in use.
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    # Spark's default, infinity: after an exchange an executor would stay until Java happens to collect its garbage.
    "spark.dynamicAllocation.shuffleTracking.timeout": "60s",
}
"""Settings with which executors come when tasks wait, and go when they have none; for the session's conf, before it starts."""

FOLLOWING_OPTIONS: Final = " ".join(f"--conf {name}={value}" for name, value in FOLLOWING.items())
"""The same, for spark-submit."""

_WHOLE: Final = "; without spark.executor.cores one takes all the cores of a machine, and may be all there are"

Lookup = Callable[[str], str | None]
"""From the name of a setting to its value, None if it is not set."""


def workers_are_threads(lookup: Lookup) -> bool:
    """Return whether Spark's workers are threads of the driver's process, and share its cores."""
    master = lookup("spark.master") or "local"
    return master.startswith("local") and not master.startswith("local-cluster")


def following(lookup: Lookup) -> tuple[bool, str]:
    """Return whether executors follow the workers that elastic= decides on, and one line that says how, or why not."""
    master = lookup("spark.master") or "local"
    if workers_are_threads(lookup):
        return True, f"{master}: workers are threads of one process, whose cores they share; there are no executors"
    if lookup("spark.dynamicAllocation.enabled") != "true":
        return False, f"{master}: executors stay as many as they are, whatever elastic= decides"
    bounds = [lookup(f"spark.dynamicAllocation.{end}Executors") for end in ("min", "max")]
    idle = lookup("spark.dynamicAllocation.executorIdleTimeout") or "60s"
    whole = master.startswith("spark:") and lookup("spark.executor.cores") is None
    return True, (
        f"{master}: executors follow, from {bounds[0] or 0} to {bounds[1] or 'any number'} "
        f"(spark.dynamicAllocation.minExecutors, maxExecutors); one without tasks for {idle} goes (executorIdleTimeout), "
        f"if the trigger leaves it so long{_WHOLE if whole else ''}"
    )
