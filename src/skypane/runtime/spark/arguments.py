"""Checks of the arguments that the public functions share: the DataFrame, required arguments, policies, groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.control.elasticity.options import Elasticity
from skypane.control.worker_options import WorkerOptions
from skypane.operators.query import Query, TypedQuery, check_implements
from skypane.operators.skyline import Skyline
from skypane.plugins import Registered
from skypane.preference import Preference
from skypane.progress import ProgressPolicy
from skypane.progress import registry as policies
from skypane.progress.default_policy import DEFAULT
from skypane.runtime.spark.ignored_collations import compared_alike, warn_of_ignored_collations
from skypane.runtime.spark.machine.interpreter import check_workers
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.types import ConfigError, Duration, Micros, micros
from skypane.windows import Windows


def rows_schema(rows: object, *, streaming: bool, other: str) -> pa.Schema:
    """Return the rows' schema in Arrow; raise ConfigError unless `rows` is a DataFrame of the requested kind.

    streaming   whether a streaming or a static DataFrame is required
    other       the call that takes a DataFrame of the other kind

    Also raises ConfigError for columns that cannot be transferred to Python, and warns of collations.
    """
    if not isinstance(rows, DataFrame):
        kind = f"{type(rows).__module__.partition('.')[0]}.{type(rows).__name__}"
        remedy = ""
        if kind in {"pandas.DataFrame", "polars.DataFrame", "pyarrow.Table"}:
            to_spark = "rows.to_arrow()" if kind.startswith("polars") else "rows"
            remedy = f": convert it with spark.createDataFrame({to_spark})"
        raise ConfigError(f"the first argument must be a Spark DataFrame, got a {kind}{remedy}")
    if rows.isStreaming and not streaming:
        raise ConfigError(f"this DataFrame is a stream, which has no end: make a job of it with {other}")
    if streaming and not rows.isStreaming:
        raise ConfigError(f"this DataFrame is static: read it with spark.readStream, or query it with {other}")
    check_workers(rows.sparkSession)
    for name, times in Counter(rows.columns).items():
        if times > 1:
            raise ConfigError(f"there are {times} columns {name!r}: rename or drop all but one")
        if "." in name or "`" in name or name == "*":
            # PySpark looks columns up by name, and reads a dot as access to a field, and a star as all columns.
            raise ConfigError(
                f"column {name!r} has a dot or a backtick in its name, or is a star, which PySpark cannot map: rename it"
            )
    schema = arrow_schema(rows)
    warn_of_ignored_collations(rows)
    return schema


def query_of(query: Query | Preference | str, rows: DataFrame, schema: pa.Schema) -> Query:
    """Return the query over rows, the skyline of a preference; raise ConfigError if it does not implement Query.

    schema   the schema of the rows in Arrow
    """
    asked = Skyline(query) if isinstance(query, Preference | str) else query
    check_implements(asked)
    return asked.for_types(compared_alike(schema, rows.schema)) if isinstance(asked, TypedQuery) else asked


def check_needed(needed: Mapping[str, object]) -> None:
    """Raise ConfigError that names every argument of `needed` that is None."""
    missing = [f"{name}=" for name, value in needed.items() if value is None]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} needed here")


def policy_of(progress: ProgressPolicy | None) -> ProgressPolicy:
    """Return the policy, the default for None; raise ConfigError if `progress` is not a policy."""
    policy = DEFAULT if progress is None else progress
    if not isinstance(policy, ProgressPolicy):
        raise ConfigError(
            f"progress must be a policy such as Watermark('1 hour') or KSlack(), got {policy!r}; there are "
            f"{', '.join(Registered(policies))}"
        )
    return policy


def early_of(early: Duration | None) -> Micros | None:
    """Return the argument `early` in microseconds; raise ConfigError unless it is longer than 0."""
    every = None if early is None else micros(early, "early")
    if every is not None and every <= 0:
        raise ConfigError(f"early must be longer than 0, got {early!r}")
    return every


def windows_of(window: Duration | Windows, slide: Duration | None) -> Windows:
    """Return the windows of the arguments `window` and `slide`; raise ConfigError if both set the slide."""
    if not isinstance(window, Windows):
        return Windows.of(window, slide)
    if slide is not None:
        raise ConfigError(f"slide={slide!r} is set twice: window={window!r} has a slide already; leave slide= out")
    return window


def workers_of(workers: WorkerOptions | None, elastic: Elasticity | None) -> WorkerOptions:
    """Return the options of the arguments `workers` and `elastic`; raise ConfigError if both are given."""
    if workers is None:
        return WorkerOptions(elastic=elastic)
    if not isinstance(workers, WorkerOptions):
        raise ConfigError(f"workers must be WorkerOptions(plq_workers=..., wlq_workers=...), got {workers!r}")
    if elastic is not None:
        raise ConfigError("elastic= is set twice: workers= has it, too; set it in WorkerOptions(elastic=...) only")
    return workers
