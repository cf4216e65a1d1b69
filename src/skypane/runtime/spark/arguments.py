"""What a user hands to a door, read and refused in one wording: the DataFrame, what is needed, the policy, the windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from skypane.control.elasticity import registry as laws
from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.options import Elasticity
from skypane.control.workers import Workers
from skypane.naming import registered
from skypane.progress import KSlack, ProgressPolicy
from skypane.progress import registry as policies
from skypane.runtime.spark.machine.interpreter import check_workers
from skypane.runtime.spark.machine.session import over_connect
from skypane.runtime.spark.schema import arrow_schema
from skypane.types import ConfigError, Duration
from skypane.windows import Windows


def rows_schema(rows: object, *, streaming: bool) -> pa.Schema:
    """Return the rows' schema in Arrow; refuse what is no DataFrame, is one of the other kind, or cannot come to Python."""
    if not isinstance(rows, DataFrame):
        kind = f"{type(rows).__module__.partition('.')[0]}.{type(rows).__name__}"
        remedy = ""
        if kind in {"pandas.DataFrame", "polars.DataFrame", "pyarrow.Table"}:
            to_spark = "rows.to_arrow()" if kind.startswith("polars") else "rows"
            remedy = f": make one of it, spark.createDataFrame({to_spark})"
        raise ConfigError(f"the first argument must be a Spark DataFrame, got a {kind}{remedy}")
    if rows.isStreaming and not streaming:
        raise ConfigError(
            "this DataFrame is a stream, which has no end to wait for: "
            "sp.stream(rows, sp.Skyline(...), time=..., window=..., checkpoint=..., output=...) makes a job of it"
        )
    if streaming and not rows.isStreaming:
        raise ConfigError(
            "this DataFrame is static: read it by spark.readStream, or answer it at once by sp.ask(rows, query)"
        )
    if streaming and over_connect(rows.sparkSession):
        raise ConfigError(
            "this stream is read over Spark Connect, whose server would run each batch in a process of its own, away from "
            "the engine: start the job where the driver is, in a session of SparkSession.builder.master(...) or spark-submit"
        )
    check_workers(rows.sparkSession)
    for name, times in Counter(rows.columns).items():
        if times > 1:
            raise ConfigError(f"there are {times} columns {name!r}: rename or drop all but one")
        if "." in name or "`" in name:
            # PySpark looks columns up by name, and reads a dot as a field's.
            raise ConfigError(
                f"column {name!r} has a dot or a backtick in its name, which PySpark cannot map: rename it"
            )
    return arrow_schema(rows)


def check_needed(needed: Mapping[str, object]) -> None:
    """Raise ConfigError that names everything of `needed` that is None."""
    lacking = [f"{name}=" for name, value in needed.items() if value is None]
    if lacking:
        raise ConfigError(f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} needed here")


def policy_of(progress: ProgressPolicy | None) -> ProgressPolicy:
    """Return the policy, the default one if there is none; ConfigError for what is no policy."""
    policy = KSlack() if progress is None else progress
    if isinstance(policy, type) or not hasattr(policy, "step"):
        raise ConfigError(
            f"progress must be a policy such as Watermark('1 hour') or KSlack(), got {policy!r}; there are "
            f"{', '.join(registered(policies))}"
        )
    return policy


def windows_of(window: Duration | None, slide: Duration | None, offset: Duration | None) -> Windows:
    """Return the windows that three durations mean."""
    if window is None:
        raise ConfigError("window= is needed here")
    return Windows.of(window, slide, "0 seconds" if offset is None else offset)


def elastic_law(elastic: Elasticity, asked: Workers, cores: int, given: tuple[bool, bool]) -> Elastic:
    """Return the elastic law that begins with the workers asked for; refuse those given that its bounds forbid."""
    if not isinstance(elastic, Elasticity):
        raise ConfigError(
            f"elastic must be {' or '.join(f'{name}()' for name in registered(laws))}, with max_workers=, or None; got {elastic!r}"
        )
    law = elastic.law(asked, cores)
    begun = law.init().workers
    for stage, is_given in zip(("plq", "wlq"), given, strict=True):
        wanted, bounded = getattr(asked, stage), getattr(begun, stage)
        if is_given and wanted != bounded:
            raise ConfigError(
                f"{stage}_workers={wanted} is where elastic= begins, and its bounds allow {bounded}: take that, or widen "
                f"max_workers, least_{stage}, most_{stage}"
            )
    return law
