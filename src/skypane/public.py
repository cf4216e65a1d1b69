"""The public names of the package, imported from the modules that define them; `import skypane` exposes them."""

import typing
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version
from types import ModuleType as _ModuleType

from skypane.control.admission.readers import Readers as Readers
from skypane.control.elasticity.registry import *
from skypane.control.splitting import PaneRoundRobin as PaneRoundRobin
from skypane.control.splitting import TupleRoundRobin as TupleRoundRobin
from skypane.control.worker_options import WorkerOptions as WorkerOptions
from skypane.metrics import BatchMetrics as BatchMetrics
from skypane.opentelemetry.registered_metrics import RegisteredMetrics as RegisteredMetrics
from skypane.opentelemetry.registered_metrics import register_metrics as register_metrics
from skypane.operators.aggregates.aggregate import Aggregate as Aggregate
from skypane.operators.aggregates.functions import Function as Function
from skypane.operators.aggregates.registry import *
from skypane.operators.aggregates.wide_states import Accumulator as Accumulator
from skypane.operators.dominance import KDominant as KDominant
from skypane.operators.dominance import TopDelta as TopDelta
from skypane.operators.query import BulkQuery as BulkQuery
from skypane.operators.query import Query as Query
from skypane.operators.skyline import Skyline as Skyline
from skypane.operators.topk import TopK as TopK
from skypane.preference import Preference as Preference
from skypane.preference import Score as Score
from skypane.preference import around as around
from skypane.preference import diff as diff
from skypane.preference import from_sense as from_sense
from skypane.preference import high as high
from skypane.preference import low as low
from skypane.preference import parse as parse
from skypane.progress import ProgressPolicy as ProgressPolicy
from skypane.progress.registry import *
from skypane.prometheus.endpoint import MetricsServer as MetricsServer
from skypane.prometheus.endpoint import serve_metrics as serve_metrics
from skypane.runtime.spark.amend import Amend as Amend
from skypane.runtime.spark.answer_versions import current_answers as current_answers
from skypane.runtime.spark.answer_versions import read_answers as read_answers
from skypane.runtime.spark.api import aggregate as aggregate
from skypane.runtime.spark.api import ask as ask
from skypane.runtime.spark.api import k_dominant as k_dominant
from skypane.runtime.spark.api import skyline as skyline
from skypane.runtime.spark.api import stream as stream
from skypane.runtime.spark.api import top_delta as top_delta
from skypane.runtime.spark.api import top_k as top_k
from skypane.runtime.spark.continuous_api import continuous_skyline as continuous_skyline
from skypane.runtime.spark.continuous_api import skyline_history as skyline_history
from skypane.runtime.spark.handle import StreamHandle as StreamHandle
from skypane.runtime.spark.job import Job as Job
from skypane.runtime.spark.machine.pyfile import pyfile as pyfile
from skypane.runtime.spark.machine.session import session as session
from skypane.runtime.spark.reparsing import reparsed as reparsed
from skypane.runtime.spark.sinks.registry import *
from skypane.runtime.spark.sinks.sink import Sink as Sink
from skypane.runtime.spark.sources.many.inputs_api import inputs as inputs
from skypane.runtime.spark.sql.register import register as register
from skypane.runtime.spark.streams_api import streams as streams
from skypane.types import BadInputError as BadInputError
from skypane.types import CheckpointError as CheckpointError
from skypane.types import ConfigError as ConfigError
from skypane.types import MemoryLimitError as MemoryLimitError
from skypane.types import SkypaneError as SkypaneError
from skypane.windows import Windows as Windows

try:
    __version__ = _version("skypane")
except _PackageNotFoundError:  # a checkout that is not installed
    __version__ = "unknown"

if not typing.TYPE_CHECKING:  # type checkers use the imports "as" themselves
    __all__ = ["__version__", *(  # noqa: PLE0604 - all are strings
        name for name, value in globals().items() if not (name.startswith("_") or isinstance(value, _ModuleType))
    )]  # fmt: skip
