"""`sp.inputs`, the API for many inputs; only calling it needs PySpark 4.2."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from dataclasses import asdict

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from skypane.control.admission.ahead import LEAD, checked_lead
from skypane.control.admission.readers import Readers
from skypane.metrics import INPUT
from skypane.operators.entry.raw_text import OFFSET, RAW
from skypane.runtime.spark.sources.many.discovery import from_text, listed, to_text
from skypane.runtime.spark.sources.many.input_kind import InputSpec
from skypane.runtime.spark.sources.many.option_names import FORMAT, READERS
from skypane.runtime.spark.spark_schema import struct_of
from skypane.types import ConfigError, Duration, micros

_log = logging.getLogger(__name__)

SENT = (StructField(OFFSET, LongType()), StructField(RAW, StringType()))
"""The columns with the raw text of rows (operators/entry/raw_text.py)."""


def inputs(
    spark: SparkSession,
    given: str | os.PathLike[str] | Iterable[object],
    schema: str | StructType,
    *,
    readers: int | Readers = READERS,
    rows_per_trigger: int | None = None,
    input_column: str = INPUT,
    malformed_column: str | None = None,
    raw_text: str = "malformed",
    on_loss: str = "fail",
    time_column: str | None = None,
    align: bool = True,
    lead: Duration = LEAD,
) -> DataFrame:
    """Return many inputs as one streaming DataFrame: the columns of `schema`, and `input_column`, a row's input.

    given             files and patterns: paths, or mappings with path, name, format, header, compression and meta, or those of
                      folders of object stores, topics and logs (docs/admission.md); or the path of a JSON file that lists
                      them, which is read again for every micro-batch
    readers           the largest number of tasks in a micro-batch; Readers(max_readers=8, latency="5 seconds") uses the fewest
                      that keep the bound on how long a row waits
    rows_per_trigger  the largest number of rows in a micro-batch, shared among the inputs; None: all rows
    input_column      the column that names a row's input
    malformed_column  a column that gives the input, offset, error and text of a line that does not parse; the other
                      columns of such a row are null
    raw_text          rows of which the late sink of a job gets the raw text: "malformed", those that do not parse, or have no time; or "all",
                      which takes more time. Each other row has its offset. Two columns carry this, _skypane_offset and
                      _skypane_raw, which no query and no answer of a job has
    on_loss           what to do if a file was shortened after it was read, an object that a batch needs is gone, or several
                      became visible too late to know which: "fail", or "skip", to read the present data
    time_column       the column of event time: a timestamp, a date or a whole number; default: the only timestamp
    align             whether inputs are read in step by event time while more rows wait than fit in a micro-batch; else, and
                      without a time column, each gets a max-min fair share

    lead              how long before a change of the rate that meta-data state its readers and workers are there, at most
                      an hour: the time that they need to start. At least three micro-batches, whatever is given

    Raises ConfigError for invalid inputs, and for a time column that is missing or of another type. Needs PySpark 4.2.

    >>> rows = sp.inputs(spark, ["shop-offers/*.json"], "ts timestamp, city string, price double, rating double")
    >>> rows.columns
    ['ts', 'city', 'price', 'rating', 'input', '_skypane_offset', '_skypane_raw']
    >>> rows.isStreaming
    True
    """
    from skypane.runtime.spark.sources.many.source import ManySource, register  # noqa: PLC0415 - needs PySpark 4.2

    register(spark)
    text = os.path.abspath(given) if isinstance(given, str | os.PathLike) else to_text(listed(given))  # noqa: PTH100
    _report_past_changes(from_text(text), time.time())
    columns = _columns(schema)
    for column in (input_column, malformed_column):
        if column is not None:
            if column in columns.names:
                raise ConfigError(
                    f"schema has a column {column!r} already; choose another input_column or malformed_column"
                )
            columns = columns.add(StructField(column, StringType()))
    for field in SENT:
        if field.name in columns.names:
            raise ConfigError(f"schema has a column {field.name!r}, which inputs add for the late sink: rename it")
        columns = columns.add(field)
    options = {"inputs": text, "readers": readers_text(readers), "rowsPerTrigger": rows_per_trigger,
               "inputColumn": input_column, "malformedColumn": malformed_column, "rawText": raw_text, "onLoss": on_loss,
               "timeColumn": time_column, "align": align, "lead": f"{checked_lead(lead):d} us",
               "timeZone": spark.conf.get("spark.sql.session.timeZone"),
               "caseSensitive": spark.conf.get("spark.sql.caseSensitive")}  # fmt: skip
    texts = {option: str(value) for option, value in options.items() if value is not None}
    ManySource(texts).streamReader(columns)  # raises ConfigError now for invalid options
    return spark.readStream.format(FORMAT).schema(columns).options(**texts).load()


def readers_text(readers: int | Readers) -> str:
    """Return readers as the text of an option."""
    if not isinstance(readers, Readers):
        return str(readers)
    return json.dumps(asdict(readers) | {"latency": f"{micros(readers.latency):d} us"})


def _report_past_changes(listing: Iterable[InputSpec], now: float) -> None:
    """Report entries whose changes of the rate have all passed: right for a restart, else perhaps a mistyped date."""
    for at, one in enumerate(listing):
        if one.meta.schedule.is_over(now):
            texts = ", ".join(one.meta.schedule.texts)
            _log.warning("inputs[%d].meta: all changes have passed, and the last one holds: %s", at, texts)


def _columns(schema: str | StructType) -> StructType:
    # A copy, because add() changes it; nullable, because a malformed row has nulls in all columns.
    return StructType([StructField(one.name, one.dataType, metadata=one.metadata) for one in struct_of(schema)])
