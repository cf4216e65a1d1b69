"""Skyline, top-k and k-dominant queries over sliding windows, in batch and stream, on stock PySpark.

>>> import skypane as sp
>>> sp.low("price") * sp.high("rating")
low('price') * high('rating')

skyline, top_k, k_dominant, top_delta, aggregate and ask answer a static DataFrame; stream makes a Job of a streaming one.
continuous_skyline tells every change of a front: as it happens, or as a history.
"""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version

from skypane.control.admission.readers import Readers
from skypane.control.elasticity.options import Fuzzy, Model, Threshold
from skypane.control.splitting import PaneRoundRobin, TupleRoundRobin
from skypane.metrics import BatchMetrics
from skypane.operators.aggregates.aggregate import Aggregate
from skypane.operators.aggregates.functions import Function
from skypane.operators.aggregates.wide import Accumulator
from skypane.operators.aggregates.words import (
    approx_count_distinct,
    approx_quantile,
    avg,
    collect,
    count,
    count_distinct,
    count_if,
    first,
    in_order,
    keep,
    last,
    max_by,
    min_by,
    stddev,
    stddev_pop,
    var_pop,
    variance,
)
from skypane.operators.aggregates.words import max_ as max  # noqa: A004 - sp.max, as SQL calls it
from skypane.operators.aggregates.words import min_ as min  # noqa: A004 - as max
from skypane.operators.aggregates.words import sum_ as sum  # noqa: A004 - as max
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import BulkQuery, Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import Preference, Score, around, diff, from_sense, high, low, parse
from skypane.progress import AqKSlack, KSlack, ProgressPolicy, Readiness, Watermark
from skypane.runtime.spark.api import aggregate, ask, k_dominant, skyline, stream, top_delta, top_k
from skypane.runtime.spark.continuous import continuous_skyline
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sinks.console import Console
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.sources.many.door import inputs
from skypane.types import BadInputError, CheckpointError, ConfigError, MemoryLimitError, SkypaneError

try:
    __version__ = _version("skypane")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "unknown"

__all__ = [
    "Accumulator",
    "Aggregate",
    "AqKSlack",
    "BadInputError",
    "BatchMetrics",
    "BulkQuery",
    "CheckpointError",
    "ConfigError",
    "Console",
    "Directory",
    "Function",
    "Fuzzy",
    "Job",
    "KDominant",
    "KSlack",
    "Memory",
    "MemoryLimitError",
    "Model",
    "PaneRoundRobin",
    "Preference",
    "ProgressPolicy",
    "Query",
    "Readers",
    "Readiness",
    "Score",
    "Sink",
    "Skyline",
    "SkypaneError",
    "StreamHandle",
    "Threshold",
    "TopDelta",
    "TopK",
    "TupleRoundRobin",
    "Watermark",
    "__version__",
    "aggregate",
    "approx_count_distinct",
    "approx_quantile",
    "around",
    "ask",
    "avg",
    "collect",
    "continuous_skyline",
    "count",
    "count_distinct",
    "count_if",
    "diff",
    "first",
    "from_sense",
    "high",
    "in_order",
    "inputs",
    "k_dominant",
    "keep",
    "last",
    "low",
    "max",
    "max_by",
    "min",
    "min_by",
    "parse",
    "session",
    "skyline",
    "stddev",
    "stddev_pop",
    "stream",
    "sum",
    "top_delta",
    "top_k",
    "var_pop",
    "variance",
]


def __dir__() -> list[str]:
    """Return what a user may want, without the rooms of the package."""
    return sorted(__all__)
