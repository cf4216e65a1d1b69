"""From a checked JobFile to what runs: its DataFrame, its query on it, its sinks. Nothing is read or written here."""

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
from skypane.jobs.model import FILE_FORMATS, JobFile, Source, Window
from skypane.jobs.queries import ContinuousPart, QueryPart
from skypane.places import Place
from skypane.runtime.environment import held
from skypane.runtime.spark.causes import cause
from skypane.runtime.spark.sources.named import load
from skypane.types import ConfigError, SkypaneError


def session(job: JobFile) -> SparkSession:
    """Return the running session, or one as the job wants it."""
    return sp.session(job.spark.master, job.name, _told("spark.conf", job.spark.conf))


def build(job: JobFile, spark: SparkSession) -> DataFrame | sp.Job:
    """Return the answers of a batch, not yet computed, or a streaming job that is ready to start.

    Raise ConfigError naming the section of the file, if Spark or the query cannot make sense of it.
    """
    rows = frame(job, spark)
    if isinstance(job.query, ContinuousPart):
        answers: DataFrame | sp.Job = sp.continuous_skyline(rows, job.query.preference, by=job.query.by, **options(job))
        return answers
    door = sp.stream if job.mode == "stream" else sp.ask
    return door(rows, job.asked(), **options(job))


def frame(job: JobFile, spark: SparkSession) -> DataFrame:
    """Return the rows that the query sees: source, derive, where, select."""
    frame = _during("source", lambda: _source(job.source, spark, streaming=job.mode == "stream"))
    for name, expression in job.derive.items():
        frame = _during(f"derive.{name}", lambda f=frame, n=name, e=expression: f.withColumn(n, expr(e)))
    if job.where is not None:
        where = job.where
        frame = _during("where", lambda: frame.where(where))
    return _during("select", lambda: frame.selectExpr(*job.select)) if job.select else frame


def options(job: JobFile) -> dict[str, Any]:
    """Return the keyword arguments that the job's sections mean."""
    arguments: dict[str, Any] = {}
    if job.window is not None:
        window = job.window
        arguments |= {"time": window.time, "window": window.length}
        arguments |= _grid(window) if isinstance(job.query, QueryPart) else _span(job.query)
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


def _grid(window: Window) -> dict[str, Any]:
    """Return where windows begin."""
    return {"offset": window.offset} | ({} if window.slide is None else {"slide": window.slide})


def _span(query: ContinuousPart) -> dict[str, Any]:
    """Return how much time is told at once."""
    return {} if query.every is None else {"every": query.every}


def _temporary() -> str:
    """Return a place for a checkpoint that no one will look for; it is made when the stream starts, and not before."""
    return str(Path(tempfile.gettempdir()) / f"skypane-{uuid4().hex}")


def write(job: JobFile, answers: DataFrame) -> None:
    """Write or print the answers of a batch job; SkypaneError with the cause if that fails."""
    output = job.output
    try:
        if output.path is None:
            answers.show(output.rows, truncate=False)
            return
        writer = answers.write.format(output.format).mode("overwrite" if output.if_exists == "overwrite" else "error")
        (writer.option("header", value=True) if output.format == "csv" else writer).save(
            Place.of(output.path, "output.path").spark
        )
    except (PySparkException, Py4JJavaError) as error:
        raise SkypaneError(f"the batch has failed: {cause(error)}") from error


def _source(source: Source, spark: SparkSession, *, streaming: bool) -> DataFrame:
    path = None if source.path is None else Place.of(source.path, "source.path").spark
    name, options = load(spark, source.format, _told("source.options", source.options))
    if source.max_files_per_trigger is not None:
        options["maxFilesPerTrigger"] = str(source.max_files_per_trigger)
    reader: Any = (spark.readStream if streaming else spark.read).format(name).options(**options)
    schema = source.schema_
    if schema is None and streaming and name in FILE_FORMATS:
        # Spark does not look into the files of a stream before it runs; those that are there tell.
        schema = spark.read.format(name).options(**options).load(path).schema  # type: ignore[assignment]
    if schema is not None:
        reader = reader.schema(schema)
    frame: DataFrame = reader.load(path) if path is not None else reader.load()
    return frame


def _during(section: str, action: Any) -> DataFrame:
    """Return what `action` does; an error of Spark's becomes one sentence that names the section."""
    try:
        frame: DataFrame = action()
    except (PySparkException, Py4JJavaError) as error:
        raise ConfigError(f"{section}: {cause(error)}") from error
    return frame


def _told(section: str, options: Mapping[str, str | bool | float]) -> dict[str, str]:
    """Return options as Spark takes them: what "$NAME" stands for in the place of it."""
    return {name: held(_text(value), f"{section}.{name}", os.environ) for name, value in options.items()}


def _text(value: str | bool | float) -> str:
    """Return a value as Spark's options write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
