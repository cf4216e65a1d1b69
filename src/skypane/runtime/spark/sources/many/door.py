"""The door to many inputs, which PySpark's newer versions alone open: `sp.inputs`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from skypane.control.admission.readers import Readers
from skypane.runtime.spark.sources.many.listing import from_text, listed, to_text
from skypane.types import ConfigError, micros

FORMAT = "skypane-many"
READERS = 2
INPUT = "input"


def inputs(
    spark: SparkSession,
    given: str | os.PathLike[str] | Iterable[object],
    schema: str | StructType,
    *,
    readers: int | Readers = READERS,
    rows_per_trigger: int | None = None,
    name: str = INPUT,
    malformed: str | None = None,
    on_loss: str = "fail",
) -> DataFrame:
    """Return many inputs as one streaming DataFrame: the columns of `schema`, and `name`, the input that a row is of.

    given             files and patterns: paths, or mappings with path, name, format, header and meta; or the path of a
                      JSON file that lists them, which is read anew for every batch
    readers           tasks of a micro-batch, at most; Readers(most=8, latency="5 seconds") takes the fewest of them that
                      keep a bound on how long a row waits
    rows_per_trigger  rows of a micro-batch, at most, shared fairly among the inputs; None: all there are
    malformed         a column that says of a line that does not parse what it is and where; its other columns are null
    on_loss           what happens when a file is shorter than it was read: "fail", or "skip", to read what it has now

    Raises ConfigError for inputs that cannot be; needs PySpark 4.2.
    """
    from skypane.runtime.spark.sources.many.source import ManySource, register  # noqa: PLC0415 - see above

    register(spark)
    text = os.path.abspath(given) if isinstance(given, str | os.PathLike) else to_text(listed(given))  # noqa: PTH100
    from_text(text)
    columns = _columns(schema)
    for column in (name, malformed):
        if column is not None:
            if column in columns.names:
                raise ConfigError(f"schema has a column {column!r} already; name the one for inputs differently")
            columns = columns.add(StructField(column, StringType()))
    options = {"inputs": text, "readers": readers_text(readers), "rowsPerTrigger": rows_per_trigger, "inputColumn": name,
               "malformedColumn": malformed, "onLoss": on_loss}  # fmt: skip
    texts = {option: str(value) for option, value in options.items() if value is not None}
    ManySource(texts).streamReader(columns)  # what is wrong with the options is told here
    return spark.readStream.format(FORMAT).schema(columns).options(**texts).load()


def readers_text(readers: int | Readers) -> str:
    """Return readers as an option's text."""
    if not isinstance(readers, Readers):
        return str(readers)
    return json.dumps(asdict(readers) | {"latency": f"{micros(readers.latency):d} us"})


def _columns(schema: str | StructType) -> StructType:
    columns = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(columns, StructType):
        raise ConfigError(f'schema must name columns and their types, "id BIGINT, price DOUBLE", got {schema!r}')
    # Another list, which add() may change; and a line that does not parse has nulls everywhere.
    return StructType([StructField(one.name, one.dataType, metadata=one.metadata) for one in columns])
