"""Build the DataFrame, the query and the sinks of a checked JobFile. Only BatchJob.write() reads or writes data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

import skypane as sp
from skypane.jobs.job_file import FILE_FORMATS, JobFile, SourceSection
from skypane.jobs.job_query import JobQuery
from skypane.jobs.output_section import OutputSection
from skypane.jobs.query_section import ContinuousSection
from skypane.locations import Location
from skypane.operators.entry.raw_text import FORMAT, KEPT, OFFSET, RAW, TEXT
from skypane.operators.stay_columns import WINDOWS
from skypane.runtime.environment import held
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.having_by_spark import by_workers
from skypane.runtime.spark.machine.java_errors import Py4JJavaError
from skypane.runtime.spark.machine.session_kind import over_connect
from skypane.runtime.spark.sinks.console import show
from skypane.runtime.spark.sources.corrupt_records import corrupt_records
from skypane.runtime.spark.sources.source_names import load
from skypane.runtime.spark.spark_schema import arrow_schema
from skypane.types import ConfigError, SkypaneError

_PARSES = f"{TEXT} IS NOT NULL AND {FORMAT} IS NOT NULL"


def session(job: JobFile) -> SparkSession:
    """Return the running session, or start one with the settings of the job."""
    remote = job.spark.remote
    return sp.session(
        job.spark.master,
        job.name,
        _resolved("spark.conf", job.spark.conf),
        remote=None if remote is None else held(remote, "spark.remote", os.environ),
    )


@dataclass(frozen=True)
class BatchJob:
    """A batch job that is ready to run: its input rows, and its lazy answers."""

    job: JobFile
    rows: DataFrame
    answers: DataFrame

    def write(self) -> None:
        """Write or print the answers; raise SkypaneError with the cause if that fails."""
        (one,) = self.job.each_query
        output = one.output
        if output.path is not None and self._by_workers:
            sp.ask(self.rows, one.build(), **options(self.job), output=output.path, if_exists=output.if_exists)
            return
        try:
            if output.path is None:
                show(self.answers, output.rows)
            else:
                _by_spark(self.answers, output, output.path)
        except (PySparkException, Py4JJavaError) as error:
            raise SkypaneError(f"the batch job failed: {cause(error)}") from error

    @property
    def _by_workers(self) -> bool:
        """Whether the workers write the answers themselves; else Spark does, which has them sent from the workers."""
        (one,) = self.job.each_query
        output, query = one.output, one.query
        if isinstance(query, ContinuousSection) or output.format != "parquet" or output.path is None:
            return False
        if over_connect(self.rows.sparkSession) or not _workers_reach(Location.of(output.path, "output.path")):
            return False
        return by_workers(one.build(), arrow_schema(self.answers))


def _workers_reach(place: Location) -> bool:
    """Return whether workers can write files that a rename shows: Spark reaches more file systems than they do."""
    if place.is_object:
        return False
    try:
        _ = place.files
    except ConfigError:  # pyarrow has no client for it, or not its library
        return False
    return True


def _by_spark(answers: DataFrame, output: OutputSection, path: str) -> None:
    writer = answers.write.format(output.format).mode("overwrite" if output.if_exists == "overwrite" else "error")
    writer = writer.option("header", value=True) if output.format == "csv" else writer
    writer.save(Location.of(path, "output.path").spark)


def build(job: JobFile, spark: SparkSession) -> BatchJob | sp.Job:
    """Return a batch job, or a streaming job, that is ready to run.

    Raise ConfigError, which names the section of the file, if Spark or the query rejects the section.
    """
    rows, stream = frame(job, spark), job.mode == "stream"
    if job.queries:
        return sp.streams(rows, {one.name: one.build() for one in job.each_query}, **options(job))
    (one,) = job.each_query
    if isinstance(one.query, ContinuousSection):
        over_time = sp.continuous_skyline if stream else sp.skyline_history
        ready = over_time(rows, one.query.preference, by=one.query.by, **options(job))
    else:
        ready = (sp.stream if stream else sp.ask)(rows, one.build(), **options(job))
    return ready if isinstance(ready, sp.Job) else BatchJob(job, rows, ready)


def frame(job: JobFile, spark: SparkSession) -> DataFrame:
    """Return the input rows of the query, after the sections source, derive, where and select."""
    return _derived(job, _during("source", lambda: _source(job.source, spark, streaming=job.mode == "stream")))


def reparsed(job: JobFile, rows: DataFrame) -> DataFrame:
    """Return rejected rows of a job, parsed again from their raw text; those without one are as they were."""
    schema = job.source.schema_
    parsed = _during("source", lambda: sp.reparsed(rows.where(_PARSES), schema))
    fixed = _derived(job, parsed)
    return fixed.select(*rows.columns).unionByName(rows.where(f"NOT ({_PARSES})"))


def _derived(job: JobFile, frame: DataFrame) -> DataFrame:
    """Return rows of the source after the sections derive, where and select, which keep their raw text."""
    for name, expression in job.derive.items():
        frame = _during(f"derive.{name}", lambda f=frame, n=name, e=expression: f.withColumn(n, expr(e)))
    if job.where is not None:
        where = job.where
        frame = _during("where", lambda: frame.where(where))
    return _during("select", lambda: _selected(frame, job.select)) if job.select else frame


def _selected(frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
    chosen = frame.selectExpr(*expressions)
    told = [name for name in (OFFSET, RAW, *KEPT.names) if name in frame.columns and name not in chosen.columns]
    return frame.selectExpr(*expressions, *told) if told else chosen


def options(job: JobFile) -> dict[str, Any]:
    """Return the job's sections as keyword arguments of the function that build() calls."""
    arguments = _shared(job) if job.queries else _only(*job.each_query)
    if job.mode == "batch":
        del arguments["output"]  # see BatchJob
        return arguments | {"invalid": job.invalid}
    optional = {
        "progress": None if job.progress is None else job.progress.build(),
        "source": job.source_column,
        "late": _late(job),
        "early": job.early,
        "answers": None if job.answers == WINDOWS else job.answers,
        "front": None if job.front is None else job.front.path,
    }
    arguments |= {name: value for name, value in optional.items() if value is not None}
    checkpoint = job.checkpoint if job.checkpoint is not None else _temporary()
    return arguments | {"checkpoint": checkpoint, "workers": job.workers.build()}


def _only(one: JobQuery) -> dict[str, Any]:
    """Return the windows and the output of the only query as arguments; a continuous skyline has a length only."""
    window, every = one.window, getattr(one.query, "every", None)
    arguments: dict[str, Any] = {} if every is None else {"every": every}
    if window is not None:
        length = window.length if isinstance(one.query, ContinuousSection) else window.build()
        arguments |= {"time": window.time, "window": length}
    return arguments | {"output": one.output.build()}


def _shared(job: JobFile) -> dict[str, Any]:
    """Return the windows and the outputs of several queries as arguments, by name; all have one time column."""
    windows = {one.name: one.window for one in job.each_query if one.window is not None}
    return {
        "time": next(window.time for window in windows.values()),
        "window": {name: window.build() for name, window in windows.items()},
        "output": {one.name: one.output.build() for one in job.each_query},
    }


def _late(job: JobFile) -> sp.Sink | sp.Amend | None:
    """Return the argument `late`: the sink of late rows, or the rule by which they amend answers, with that sink."""
    late = None if job.late is None else job.late.build()
    return late if job.amend is None else job.amend.build(late)


def _temporary() -> str:
    """Return the path of a temporary checkpoint, which is created when the stream starts."""
    return str(Path(tempfile.gettempdir()) / f"skypane-{uuid4().hex}")


def _source(source: SourceSection, spark: SparkSession, *, streaming: bool) -> DataFrame:
    if source.inputs is not None:
        return sp.inputs(spark, source.inputs.given, source.schema_ or "", **source.inputs.arguments())
    path = None if source.path is None else Location.of(source.path, "source.path").spark
    name, options = load(spark, source.format, _resolved("source.options", source.options))
    if source.max_files_per_trigger is not None:
        options["maxFilesPerTrigger"] = str(source.max_files_per_trigger)
    reader: Any = (spark.readStream if streaming else spark.read).format(name).options(**options)
    schema = source.schema_
    if schema is None and streaming and name in FILE_FORMATS:
        # Spark does not infer the schema of a file stream, so it is taken from the files that exist now.
        schema = spark.read.format(name).options(**options).load(path).schema  # type: ignore[assignment]
    told = corrupt_records(name, schema, options) if streaming else None
    if schema is not None:
        reader = reader.schema(schema if told is None else told.schema)
    frame: DataFrame = reader.load(path) if path is not None else reader.load()
    return frame if told is None else told.kept(frame)


def _during(section: str, action: Any) -> DataFrame:
    """Return the result of `action`; raise ConfigError, which names the section, for an error of Spark."""
    try:
        frame: DataFrame = action()
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"{section}: {cause(error)}") from error
    return frame


def _resolved(section: str, options: Mapping[str, str | bool | float]) -> dict[str, str]:
    """Return options as texts, with each "$NAME" replaced by the environment variable NAME."""
    return {name: held(_text(value), f"{section}.{name}", os.environ) for name, value in options.items()}


def _text(value: str | bool | float) -> str:
    """Return a value as the text of a Spark option."""
    return str(value).lower() if isinstance(value, bool) else str(value)
