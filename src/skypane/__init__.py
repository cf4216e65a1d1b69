"""Skyline, top-k and k-dominant queries over sliding windows, in batch and stream, on stock PySpark.

>>> import skypane as sp
>>> sp.low("price") * sp.high("rating")
low('price') * high('rating')

skyline, top_k, k_dominant, top_delta and ask answer a static DataFrame; stream makes a Job of a streaming one.
"""

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as _version

from skypane.control.elasticity.options import Fuzzy, Model, Threshold
from skypane.control.splitting import PaneRoundRobin, TupleRoundRobin
from skypane.metrics import BatchMetrics
from skypane.operators.dominance import KDominant, TopDelta
from skypane.operators.query import BulkQuery, Query
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import Preference, Score, around, diff, from_sense, high, low, parse
from skypane.progress import AqKSlack, KSlack, ProgressPolicy, Readiness, Watermark
from skypane.runtime.spark.api import ask, k_dominant, skyline, stream, top_delta, top_k
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.job import Job
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sinks.console import Console
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import BadInputError, CheckpointError, ConfigError, SkypaneError

try:
    __version__ = _version("skypane")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "unknown"

__all__ = [
    "AqKSlack",
    "BadInputError",
    "BatchMetrics",
    "BulkQuery",
    "CheckpointError",
    "ConfigError",
    "Console",
    "Directory",
    "Fuzzy",
    "Job",
    "KDominant",
    "KSlack",
    "Memory",
    "Model",
    "PaneRoundRobin",
    "Preference",
    "ProgressPolicy",
    "Query",
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
    "around",
    "ask",
    "diff",
    "from_sense",
    "high",
    "k_dominant",
    "low",
    "parse",
    "session",
    "skyline",
    "stream",
    "top_delta",
    "top_k",
]


def __dir__() -> list[str]:
    """Return what a user may want, without the rooms of the package."""
    return sorted(__all__)
