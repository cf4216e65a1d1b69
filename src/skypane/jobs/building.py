"""Build the DataFrame, the query and the sinks of a checked JobFile. Only write() reads or writes data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

import skypane as sp
from skypane.jobs.job_file import FILE_FORMATS, JobFile, SourceSection, WindowSection
from skypane.jobs.query_section import ContinuousSection, QuerySection
from skypane.locations import Location
from skypane.runtime.environment import held
from skypane.runtime.spark.error_causes import cause
from skypane.runtime.spark.sources.source_names import load
from skypane.types import ConfigError, SkypaneError


def session(job: JobFile) -> SparkSession:
    """Return the running session, or start one with the settings of the job."""
    return sp.session(job.spark.master, job.name, _resolved("spark.conf", job.spark.conf))


def build(job: JobFile, spark: SparkSession) -> DataFrame | sp.Job:
    """Return the lazy answers of a batch job, or a streaming job that is ready to start.

    Raise ConfigError, which names the section of the file, if Spark or the query rejects the section.
    """
    rows = frame(job, spark)
    if isinstance(job.query, ContinuousSection):
        answers: DataFrame | sp.Job = sp.continuous_skyline(rows, job.query.preference, by=job.query.by, **options(job))
        return answers
    entry_point = sp.stream if job.mode == "stream" else sp.ask
    return entry_point(rows, job.asked(), **options(job))


def frame(job: JobFile, spark: SparkSession) -> DataFrame:
    """Return the input rows of the query, after the sections source, derive, where and select."""
    frame = _during("source", lambda: _source(job.source, spark, streaming=job.mode == "stream"))
    for name, expression in job.derive.items():
        frame = _during(f"derive.{name}", lambda f=frame, n=name, e=expression: f.withColumn(n, expr(e)))
    if job.where is not None:
        where = job.where
        frame = _during("where", lambda: frame.where(where))
    return _during("select", lambda: frame.selectExpr(*job.select)) if job.select else frame


def options(job: JobFile) -> dict[str, Any]:
    """Return the job's sections as keyword arguments of sp.stream, sp.ask or sp.continuous_skyline."""
    arguments: dict[str, Any] = {}
    if job.window is not None:
        window = job.window
        arguments |= {"time": window.time, "window": window.length}
        arguments |= _grid(window) if isinstance(job.query, QuerySection) else _span(job.query)
    if job.mode == "batch":
        return arguments | {"invalid": job.invalid}
    parts = {
        "progress": None if job.progress is None else job.progress.build(),
        "source": job.late_by,
        "late": None if job.late is None else job.late.build(),
        "front": None if job.front is None else job.front.path,
        "plq_workers": job.workers.plq_workers,
        "wlq_workers": job.workers.wlq_workers,
        "elastic": None if job.workers.elastic is None else job.workers.elastic.build(),
    }
    arguments |= {name: value for name, value in parts.items() if value is not None}
    checkpoint = job.checkpoint if job.checkpoint is not None else _temporary()
    return arguments | {"output": job.output.build(), "checkpoint": checkpoint, "splitting": job.workers.splitting}


def _grid(window: WindowSection) -> dict[str, Any]:
    """Return the offset and slide of the windows as keyword arguments."""
    return {"offset": window.offset} | ({} if window.slide is None else {"slide": window.slide})


def _span(query: ContinuousSection) -> dict[str, Any]:
    """Return the update interval of a continuous query as a keyword argument."""
    return {} if query.every is None else {"every": query.every}


def _temporary() -> str:
    """Return the path of a temporary checkpoint, which is created when the stream starts."""
    return str(Path(tempfile.gettempdir()) / f"skypane-{uuid4().hex}")


def write(job: JobFile, answers: DataFrame) -> None:
    """Write or print the answers of a batch job; raise SkypaneError with the cause if that fails."""
    output = job.output
    try:
        if output.path is None:
            answers.show(output.rows, truncate=False)
            return
        writer = answers.write.format(output.format).mode("overwrite" if output.if_exists == "overwrite" else "error")
        (writer.option("header", value=True) if output.format == "csv" else writer).save(
            Location.of(output.path, "output.path").spark
        )
    except (PySparkException, Py4JJavaError) as error:
        raise SkypaneError(f"the batch job failed: {cause(error)}") from error


def _source(source: SourceSection, spark: SparkSession, *, streaming: bool) -> DataFrame:
    path = None if source.path is None else Location.of(source.path, "source.path").spark
    name, options = load(spark, source.format, _resolved("source.options", source.options))
    if source.max_files_per_trigger is not None:
        options["maxFilesPerTrigger"] = str(source.max_files_per_trigger)
    reader: Any = (spark.readStream if streaming else spark.read).format(name).options(**options)
    schema = source.schema_
    if schema is None and streaming and name in FILE_FORMATS:
        # Spark does not infer the schema of a file stream, so it is taken from the files that exist now.
        schema = spark.read.format(name).options(**options).load(path).schema  # type: ignore[assignment]
    if schema is not None:
        reader = reader.schema(schema)
    frame: DataFrame = reader.load(path) if path is not None else reader.load()
    return frame


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
