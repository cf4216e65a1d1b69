"""`skypane-many`: a Python data source of Spark's own kind that reads many inputs with few tasks a micro-batch.

Its offset is a place in every input, so a restarted query goes on where the last committed batch ended, and a batch that
comes again holds the same lines. Rows of one input stay in order within a batch; each row says which input it is of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from skypane.runtime.spark import versions
from skypane.runtime.spark.sources.many.door import FORMAT, INPUT, READERS
from skypane.runtime.spark.sources.many.growing import Growing
from skypane.runtime.spark.sources.many.lines import Layout, Malformed, header, parse
from skypane.runtime.spark.sources.many.listing import from_text
from skypane.runtime.spark.sources.many.planning import ON_LOSS, Offsets, Planner, Range
from skypane.types import CheckpointError, ConfigError

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

_CHUNK = 4 << 20
"""Bytes that are parsed at a time."""

#: sessions that know the source: Spark warns when it is told again
_KNOWN: WeakSet[SparkSession] = WeakSet()


def register(spark: SparkSession) -> None:
    """Make `skypane-many` known to a session by its name."""
    if spark not in _KNOWN:
        spark.dataSource.register(ManySource)
        _KNOWN.add(spark)


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
        from_text(text)
        readers = self._count("readers", READERS)
        planner = Planner(lambda: from_text(text), readers or READERS, on_loss)
        return ManyReader(planner, versions.arrow_columns(schema), named, self._count("rowsPerTrigger", None))

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
        begins = Offsets.of(start)
        if self.stopping:
            self.planner.stop_here(begins)
            self.stopping = False
        return self.planner.latest(begins, limit.max_rows if isinstance(limit, ReadMaxRows) else None).to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self.stopping = True

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.limit is None else ReadMaxRows(self.limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[Task]:
        return [Task(ranges) for ranges in self.planner.assigned(Offsets.of(start), Offsets.of(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for part in cast("Task", partition).ranges:
            for table in rows(part, self.columns, *self.named):
                yield from table.to_batches()


def rows(part: Range, columns: pa.Schema, name: str, malformed: str | None) -> Iterator[pa.Table]:
    """Yield the rows of a range in order, with the input's name, and nulls for lines that do not parse."""
    own = pa.schema([field for field in columns if field.name not in {name, malformed}])
    written, start = tuple(own.names), part.start
    if part.input.header:
        end, _ = Growing(part.input.path).after(0, 1)
        written = header(Growing(part.input.path).read(0, end))
        start = max(start, end)
    layout = Layout(part.input.format or "", own, written)
    while start < part.end:
        block = Growing(part.input.path).read(start, min(start + _CHUNK, part.end))
        if start + len(block) < part.end:
            block = block[: block.rfind(b"\n") + 1] or _whole_line(part, start)
        if not block:
            raise CheckpointError(
                f"input {part.input.name}: {part.input.path} ends before byte {part.end:,}, which a batch that has begun "
                "needs; put it back as it was"
            )
        for found in parse(layout, block, start):
            yield _with_names(found, columns, part.input.name, name, malformed)
        start += len(block)


def _whole_line(part: Range, start: int) -> bytes:
    """Return a line that is longer than what is parsed at a time."""
    end, _ = Growing(part.input.path).after(start, 1)
    return Growing(part.input.path).read(start, min(end, part.end))


def _with_names(found: pa.Table | Malformed, columns: pa.Schema, of: str, name: str, malformed: str | None) -> pa.Table:
    if isinstance(found, Malformed):
        said = f"{of} at byte {found.offset}: {found.error}: {found.line}"
        values = {name: of, malformed: said}
        arrays = [pa.array([values.get(field.name)], field.type) for field in columns]
        return pa.Table.from_arrays(arrays, schema=columns)
    constant = {name: of, malformed: None}
    arrays = [
        pa.repeat(pa.scalar(constant[field.name], field.type), len(found))
        if field.name in constant
        else found.column(field.name)
        for field in columns
    ]
    return pa.Table.from_arrays(arrays, schema=columns)
