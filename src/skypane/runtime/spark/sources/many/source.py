"""`skypane-many`: a Python data source of Spark's own kind that reads many inputs with few tasks a micro-batch.

Its offset is a place in every input, so a restarted query goes on where the last committed batch ended, and a batch that
comes again holds the same lines. Rows of one input stay in order within a batch; each row says which input it is of.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from skypane.control.admission.readers import Readers
from skypane.runtime.spark import versions
from skypane.runtime.spark.sources import registering
from skypane.runtime.spark.sources.many.door import FORMAT, INPUT, READERS
from skypane.runtime.spark.sources.many.kinds import Input, Range
from skypane.runtime.spark.sources.many.listing import KINDS, from_text
from skypane.runtime.spark.sources.many.parsing import Malformed, check_columns, check_nullable
from skypane.runtime.spark.sources.many.planning import ON_LOSS, Offsets, Planner
from skypane.runtime.spark.sources.many.watching import to_json
from skypane.types import ConfigError

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    versions.need("4.2", FORMAT)
    raise

_Told: TypeAlias = list[Malformed]

_AT_ONCE = 4096
"""Lines that do not parse, told in one batch of rows."""


def register(spark: SparkSession) -> None:
    """Make `skypane-many` known to a session by its name."""
    registering.register(spark, ManySource)


@dataclass
class Task(InputPartition):
    """What one task reads, one range after the other."""

    ranges: tuple[Range, ...]


class ManySource(DataSource):
    """`spark.readStream.format("skypane-many").schema(...)`: see `inputs` for the options.

    inputs (a JSON list, or the path of a file with one), readers, rowsPerTrigger, inputColumn, malformedColumn, onLoss.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        raise ConfigError(f"{FORMAT} reads text: say with .schema(...) which columns it has, {INPUT} string among them")

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        text, on_loss = self.options.get("inputs"), self.options.get("onLoss", "fail")
        if text is None:
            raise ConfigError(f"{FORMAT} needs option inputs, a JSON list of paths, or the path of a file with one")
        if on_loss not in ON_LOSS:
            raise ConfigError(f"on_loss must be one of {', '.join(ON_LOSS)}, got {on_loss!r}")
        named = self.options.get("inputColumn", INPUT), self.options.get("malformedColumn")
        for column in named:
            if column is not None and column not in schema.names:
                raise ConfigError(f"the schema needs the column {column!r}, a string; it has {', '.join(schema.names)}")
        columns = versions.arrow_columns(schema)
        own = pa.schema([field for field in columns if field.name not in named])
        check_nullable(own)
        for form in sorted({one.format for one in from_text(text) if one.format is not None}):
            check_columns(form, own)
        planner = Planner(lambda: from_text(text), self._readers(), on_loss)
        return ManyReader(planner, columns, named, self._count("rowsPerTrigger", None))

    def _readers(self) -> int | Readers:
        text = self.options.get("readers", "")
        if not text.startswith("{"):
            return self._count("readers", READERS) or READERS
        try:
            return Readers(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"option readers of {FORMAT} must be a number, or in JSON what Readers has: {error}"
            ) from error

    def _count(self, option: str, default: int | None) -> int | None:
        text = self.options.get(option)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < 1:
            raise ConfigError(f"option {option} of {FORMAT} must be a whole number above zero, got {text!r}")
        return int(text)


class ManyReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The planner lives in the one process that plans; tasks get ranges."""

    def __init__(self, planner: Planner, columns: pa.Schema, named: tuple[str, str | None], limit: int | None) -> None:
        self.planner = planner
        self.columns = columns
        self.named = named
        self.limit = limit
        #: whether the next look is to be the last one
        self.stopping = False

    def __getstate__(self) -> dict[str, Any]:
        # Tasks need the columns only.
        return {"columns": self.columns, "named": self.named}

    def initialOffset(self) -> dict[str, Any]:
        return Offsets({}).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        self.planner.finished(time.monotonic())
        begins = Offsets.of(start)
        if self.stopping:
            self.planner.stop_here(begins)
            self.stopping = False
        return self.planner.latest(begins, limit.max_rows if isinstance(limit, ReadMaxRows) else None).to_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        return to_json(self.planner.seen(time.monotonic()), self.planner.sized)

    def prepareForTriggerAvailableNow(self) -> None:
        self.stopping = True

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.limit is None else ReadMaxRows(self.limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        tasks = [Task(ranges) for ranges in self.planner.assigned(Offsets.of(start), Offsets.of(end))]
        self.planner.begun(time.monotonic())
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        name, malformed = self.named
        own = pa.schema([field for field in self.columns if field.name not in self.named])
        ranges = cast("Task", partition).ranges
        for key, kind in KINDS.items():
            parts = [part for part in ranges if part.input.kind == key]
            for of, found in _told_together(kind.read(parts, own)):
                yield from _with_names(found, self.columns, of, name, malformed).to_batches()


def _told_together(read: Iterable[tuple[Range, pa.Table | Malformed]]) -> Iterator[tuple[Input, pa.Table | _Told]]:
    """Yield tables, and what does not parse many at a time: a batch of rows each would cost more than parsing them."""
    told: _Told = []
    last: Input | None = None
    for part, found in read:
        if told and last is not None and (part.input is not last or len(told) == _AT_ONCE):
            yield last, told
            told = []
        last = part.input
        if isinstance(found, Malformed):
            told.append(found)
        else:
            yield last, found
    if told and last is not None:
        yield last, told


def _with_names(found: pa.Table | _Told, columns: pa.Schema, of: Input, name: str, malformed: str | None) -> pa.Table:
    """Return all columns: with the input's name, and nulls for lines that do not parse."""
    constant = {name: of.name, malformed: None}
    if not isinstance(found, pa.Table):
        said = [f"{of.name} at {of.unit} {one.offset}: {one.error}: {one.line}" for one in found]
        values = {name: [of.name] * len(found), malformed: said}
        nothing = [None] * len(found)
        arrays = [pa.array(values.get(field.name, nothing), field.type) for field in columns]
        return pa.Table.from_arrays(arrays, schema=columns)
    arrays = [
        pa.repeat(pa.scalar(constant[field.name], field.type), len(found))
        if field.name in constant
        else found.column(field.name)
        for field in columns
    ]
    return pa.Table.from_arrays(arrays, schema=columns)
