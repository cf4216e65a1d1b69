"""`skypane-many`: a Python data source (pyspark.sql.datasource) that reads many inputs with few tasks per micro-batch.

Its offset holds one offset per input. A restarted query therefore continues where the last committed batch ended, and a
replayed batch holds the same rows. Rows of one input stay in order within a task; each row names its input.
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

from skypane.control.admission.ahead import LEAD, checked_lead
from skypane.control.admission.readers import Readers
from skypane.metrics import INPUT
from skypane.operators.entry.raw_text import sent
from skypane.runtime.columns_to_read import set_as_spark, with_places
from skypane.runtime.local_times import UTC, zone_for
from skypane.runtime.row_parser import FORMATS, Malformed, check_columns, check_nullable
from skypane.runtime.spark import versions
from skypane.runtime.spark.sources import registration
from skypane.runtime.spark.sources.many.discovery import KINDS, from_text
from skypane.runtime.spark.sources.many.event_times import EventTimes, time_column
from skypane.runtime.spark.sources.many.input_kind import Input, OffsetRange
from skypane.runtime.spark.sources.many.input_metrics import to_json
from skypane.runtime.spark.sources.many.lacking_columns import LackingColumns
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.option_names import FORMAT, READERS
from skypane.runtime.spark.sources.many.planning import ON_LOSS, Planner
from skypane.runtime.spark.sources.many.row_tables import RawTexts, table_of
from skypane.types import ConfigError, Length

versions.need("4.2", FORMAT)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow  # noqa: E402

_MalformedRows: TypeAlias = list[Malformed]

_AT_ONCE = 4096
"""Malformed rows that one table reports, at most."""
_BYTES = 16 << 20
"""Bytes of their texts, after which a table has no more of them."""

MALFORMED, ALL = RAW_TEXTS = ("malformed", "all")
"""Rows that have their raw text: those that do not parse, or have no time; or all."""


def register(spark: SparkSession) -> None:
    """Register `skypane-many` with a session."""
    registration.register(spark, ManySource)


@dataclass
class ReadTask(InputPartition):
    """The ranges that one task reads, in sequence."""

    ranges: tuple[OffsetRange, ...]


class ManySource(DataSource):
    """`spark.readStream.format("skypane-many").schema(...)`; `inputs` describes the options.

    The options are inputs (a JSON list, or the path of a file with one), readers, rowsPerTrigger, inputColumn,
    malformedColumn, rawText, onLoss, timeColumn, align, lead, timeZone and caseSensitive (as the session's settings). Columns `_skypane_offset bigint` and `_skypane_raw string` of the schema get
    the raw text of rows for the late sink (operators/entry/raw_text.py).
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        raise ConfigError(f"{FORMAT} needs a schema: pass .schema(...) with all columns, including {INPUT} string")

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
        own = _read(columns, named)
        check_nullable(own)
        zone = zone_for(own, self.options.get("timeZone", UTC))
        own = set_as_spark(own, zone, case_sensitive=self._flag("caseSensitive", default=False))
        raw_text = self.options.get("rawText", MALFORMED)
        if raw_text not in RAW_TEXTS:
            raise ConfigError(f"raw_text must be one of {', '.join(RAW_TEXTS)}, got {raw_text!r}")
        for form in sorted({one.format or "" for one in from_text(text) if one.format in FORMATS}):
            check_columns(form, own)
        time = time_column(own, self.options.get("timeColumn"))
        times = EventTimes(own, time) if time is not None and self._flag("align", default=True) else None
        texts = RawTexts(raw_text == ALL, time)
        planner = Planner(lambda: from_text(text), self._readers(), on_loss, times, self._lead(), LackingColumns(own))
        own = with_places(own) if sent(columns) else own
        return ManyReader(planner, columns, own, named, self._count("rowsPerTrigger", None), texts)

    def _readers(self) -> int | Readers:
        text = self.options.get("readers", "")
        if not text.startswith("{"):
            return self._count("readers", READERS) or READERS
        try:
            return Readers(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"option readers of {FORMAT} must be a number, or a JSON object with the fields of Readers: {error}"
            ) from error

    def _lead(self) -> Length:
        return checked_lead(self.options.get("lead", LEAD))

    def _flag(self, option: str, *, default: bool) -> bool:
        text = self.options.get(option, str(default)).lower()
        if text not in {"true", "false"}:
            raise ConfigError(f"option {option} of {FORMAT} must be true or false, got {text!r}")
        return text == "true"

    def _count(self, option: str, default: int | None) -> int | None:
        text = self.options.get(option)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < 1:
            raise ConfigError(f"option {option} of {FORMAT} must be a whole number above zero, got {text!r}")
        return int(text)


class ManyReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streaming reader of all inputs: the planner stays in the planning process, tasks receive only their ranges."""

    def __init__(
        self, planner: Planner, columns: pa.Schema, own: pa.Schema, named: tuple[str, str | None], limit: int | None,
        texts: RawTexts,
    ) -> None:  # fmt: skip
        self.texts = texts
        self.planner = planner
        self.columns = columns
        #: the columns that inputs have, with what is to be known to read them
        self.own = own
        self.named = named
        self.limit = limit
        #: whether the next latestOffset() fixes where the query ends (trigger availableNow)
        self.stopping = False

    def __getstate__(self) -> dict[str, Any]:
        # Tasks need nothing else.
        return {"columns": self.columns, "own": self.own, "named": self.named, "texts": self.texts}

    def initialOffset(self) -> dict[str, Any]:
        return Offsets({}).to_json()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        self.planner.finished(time.monotonic())
        begins = Offsets.of(start)
        if self.stopping:
            self.planner.stop_here(begins)
            self.stopping = False
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        end = self.planner.latest(begins, rows)
        return self.planner.sighted(begins, end, time.time()).to_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        rows = self.planner.seen(time.monotonic(), time.time())
        return to_json(rows, self.planner.decisions)

    def prepareForTriggerAvailableNow(self) -> None:
        self.stopping = True

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self.limit is None else ReadMaxRows(self.limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ReadTask]:
        tasks = [ReadTask(ranges) for ranges in self.planner.assigned(Offsets.of(start), Offsets.of(end))]
        self.planner.begun(time.monotonic())
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        name, malformed = self.named
        ranges = cast("ReadTask", partition).ranges
        for key, kind in KINDS.items():
            parts = [part for part in ranges if part.input.kind == key]
            for of, found in _grouped(kind.read(parts, self.own)):
                yield from table_of(found, self.columns, of, name, malformed, self.texts).to_batches()


def _read(columns: pa.Schema, named: tuple[str, str | None]) -> pa.Schema:
    """Return the columns that inputs have, without those that name them, and have the raw text."""
    told = {*named, *sent(columns)}
    return pa.schema([field for field in columns if field.name not in told])


def _grouped(
    read: Iterable[tuple[OffsetRange, pa.Table | Malformed]],
) -> Iterator[tuple[Input, pa.Table | _MalformedRows]]:
    """Yield tables, and malformed rows in groups: a record batch for each would cost more than parsing them."""
    group: _MalformedRows = []
    size = 0
    last: Input | None = None
    for part, found in read:
        if group and last is not None and (part.input is not last or len(group) == _AT_ONCE or size > _BYTES):
            yield last, group
            group, size = [], 0
        last = part.input
        if isinstance(found, Malformed):
            group.append(found)
            size += len(found.text or b"")
        else:
            yield last, found
    if group and last is not None:
        yield last, group
