"""Skyline, top-k and k-dominant queries over sliding windows, in batch and stream, on stock PySpark.

>>> import skypane as sp
>>> sp.low("price") * sp.high("rating")
low('price') * high('rating')
"""

from skypane.control.splitting import PaneRoundRobin, TupleRoundRobin
from skypane.metrics import BatchMetrics
from skypane.operators.query import Query
from skypane.preference import Preference, Score, around, diff, from_sense, high, low, parse
from skypane.progress import AqKSlack, KSlack, ProgressPolicy, Watermark
from skypane.runtime.spark.api import Options, ask, k_dominant, skyline, top_delta, top_k
from skypane.runtime.spark.job import Job, StreamHandle
from skypane.runtime.spark.machine.session import session
from skypane.runtime.spark.sinks.console import Console
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import BadInputError, CheckpointError, ConfigError, SkypaneError

__all__ = [
    "AqKSlack",
    "BadInputError",
    "BatchMetrics",
    "CheckpointError",
    "ConfigError",
    "Console",
    "Directory",
    "Job",
    "KSlack",
    "Memory",
    "Options",
    "PaneRoundRobin",
    "Preference",
    "ProgressPolicy",
    "Query",
    "Score",
    "Sink",
    "SkypaneError",
    "StreamHandle",
    "TupleRoundRobin",
    "Watermark",
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
    "top_delta",
    "top_k",
]
