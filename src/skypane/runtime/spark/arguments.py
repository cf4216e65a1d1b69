"""Checks of the arguments that the public functions share: the DataFrame, required arguments, policies, windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.control.elasticity import registry as options
from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.options import Elasticity
from skypane.control.parallelism import Workers
from skypane.plugins import Registered
from skypane.progress import KSlack, ProgressPolicy
from skypane.progress import registry as policies
from skypane.runtime.spark.machine.interpreter import check_workers
from skypane.runtime.spark.machine.session import over_connect
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.types import ConfigError, Duration
from skypane.windows import Windows


def rows_schema(rows: object, *, streaming: bool) -> pa.Schema:
    """Return the rows' schema in Arrow; raise ConfigError unless `rows` is a DataFrame of the requested kind.

    streaming   whether a streaming or a static DataFrame is required

    Also raises ConfigError for columns that cannot be transferred to Python.
    """
    if not isinstance(rows, DataFrame):
        kind = f"{type(rows).__module__.partition('.')[0]}.{type(rows).__name__}"
        remedy = ""
        if kind in {"pandas.DataFrame", "polars.DataFrame", "pyarrow.Table"}:
            to_spark = "rows.to_arrow()" if kind.startswith("polars") else "rows"
            remedy = f": convert it with spark.createDataFrame({to_spark})"
        raise ConfigError(f"the first argument must be a Spark DataFrame, got a {kind}{remedy}")
    if rows.isStreaming and not streaming:
        raise ConfigError(
            "this DataFrame is a stream, which has no end: make a job of it with "
            "sp.stream(rows, sp.Skyline(...), time=..., window=..., checkpoint=..., output=...)"
        )
    if streaming and not rows.isStreaming:
        raise ConfigError(
            "this DataFrame is static: read it with spark.readStream, or query it with sp.ask(rows, query)"
        )
    if streaming and over_connect(rows.sparkSession):
        raise ConfigError(
            "this stream is read over Spark Connect, whose server would run each micro-batch in a separate process, "
            "away from the engine: start the job in the driver, in a session of SparkSession.builder.master(...) "
            "or spark-submit"
        )
    check_workers(rows.sparkSession)
    for name, times in Counter(rows.columns).items():
        if times > 1:
            raise ConfigError(f"there are {times} columns {name!r}: rename or drop all but one")
        if "." in name or "`" in name:
            # PySpark looks columns up by name, and reads a dot as access to a field.
            raise ConfigError(
                f"column {name!r} has a dot or a backtick in its name, which PySpark cannot map: rename it"
            )
    return arrow_schema(rows)


def check_needed(needed: Mapping[str, object]) -> None:
    """Raise ConfigError that names every argument of `needed` that is None."""
    missing = [f"{name}=" for name, value in needed.items() if value is None]
    if missing:
        raise ConfigError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} needed here")


def policy_of(progress: ProgressPolicy | None) -> ProgressPolicy:
    """Return the policy, KSlack() for None; raise ConfigError if `progress` is not a policy."""
    policy = KSlack() if progress is None else progress
    if not isinstance(policy, ProgressPolicy):
        raise ConfigError(
            f"progress must be a policy such as Watermark('1 hour') or KSlack(), got {policy!r}; there are "
            f"{', '.join(Registered(policies))}"
        )
    return policy


def windows_of(window: Duration | None, slide: Duration | None, offset: Duration | None) -> Windows:
    """Return the windows that three durations define; raise ConfigError if `window` is None."""
    if window is None:
        raise ConfigError("window= is needed here")
    return Windows.of(window, slide, "0 seconds" if offset is None else offset)


def elastic_policy(elastic: Elasticity, start: Workers, cores: int, given: tuple[bool, bool]) -> Elastic:
    """Return the elastic policy that begins with `start` workers, as far as its bounds allow.

    given   whether the user set plq_workers, and wlq_workers; raises ConfigError if a number set is out of bounds
    """
    if not isinstance(elastic, Elasticity):
        raise ConfigError(
            f"elastic must be {' or '.join(f'{name}()' for name in Registered(options))}, with max_workers=, or None; "
            f"got {elastic!r}"
        )
    policy = elastic.scaling(start, cores)
    first = policy.init().workers
    for stage, is_given in zip(("plq", "wlq"), given, strict=True):
        wanted, bounded = getattr(start, stage), getattr(first, stage)
        if is_given and wanted != bounded:
            raise ConfigError(
                f"{stage}_workers={wanted} is where elastic= begins, and its bounds allow {bounded}: set that, or "
                f"widen max_workers, least_{stage}, most_{stage}"
            )
    return policy
