"""The laws of a streaming source: of its reader as Spark asks it, and of a stream of it that fails and is started again.

def test_my_source_keeps_the_laws(spark, tmp_path):
    check_source(spark, MySource, {"path": "..."}, tmp_path)
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.types import StructType

from skypane.runtime.spark.sources import registering

_MOST_BATCHES: Final = 10_000
"""A source that has not come to its end after so many has none."""
_SECONDS: Final = 300


@dataclass(frozen=True)
class Made:
    """How readers of a source are made: each is one of a start of its own."""

    source: type[DataSource]
    options: Mapping[str, str]
    schema: StructType | None

    def reader(self) -> DataSourceStreamReader:
        """Return a new reader, as a start of a query has it."""
        one = self.source(dict(self.options))
        return one.streamReader(self.columns)

    @property
    def columns(self) -> StructType:
        """The columns that its rows have."""
        if self.schema is not None:
            return self.schema
        told = self.source(dict(self.options)).schema()
        return told if isinstance(told, StructType) else _columns_of(str(told))


@dataclass(frozen=True)
class Course:
    """The offsets that a reader went through, from its first one to its end."""

    offsets: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first offset and the last one."""
        return self.offsets[0], self.offsets[-1]


Law = Callable[[Made, Course], bool]


def check_source(
    spark: SparkSession,
    source: type[DataSource],
    options: Mapping[str, str],
    folder: Path,
    *,
    schema: StructType | str | None = None,
) -> None:
    """Raise AssertionError, naming the law, if a source breaks one; then stream it, with a start that fails, in `folder`.

    options   those of a source that comes to an end and that nothing is added to while it is tried; with several
              micro-batches, if the source takes an option that bounds them
    schema    the columns of its rows, if the user has to tell them
    """
    made = Made(source, options, _columns_of(schema) if isinstance(schema, str) else schema)
    course = _course(made)
    for law, keeps in LAWS.items():
        if not keeps(made, course):
            raise AssertionError(f"{source.__name__} breaks a law: {law}; seen with {dict(options)}")
    if len(course.offsets) == 1:
        raise AssertionError(f"give check_source a source with rows; {source.__name__} has none with {dict(options)}")
    rows = _rows(made.reader(), *course.ends)
    _streamed(spark, made, folder, course, rows.total())


def _columns_of(ddl: str) -> StructType:
    columns = StructType.fromDDL(ddl)
    assert isinstance(columns, StructType)  # noqa: S101 - of names and types together
    return columns


def _course(made: Made) -> Course:
    """Return the way of one reader to the end of what there is."""
    reader = made.reader()
    offsets = [reader.initialOffset()]
    while len(offsets) < _MOST_BATCHES:
        after = _latest(reader, offsets[-1])
        if after == offsets[-1]:
            return Course(tuple(offsets))
        offsets.append(after)
    raise AssertionError(
        f"{made.source.__name__} breaks a law: offsets come to an end where nothing is added; after {_MOST_BATCHES} batches "
        f"it is at {offsets[-1]!r}"
    )


def _latest(reader: DataSourceStreamReader, start: Any, rows: int | None = None) -> Any:
    """Return how far a batch from `start` goes: readers of PySpark 4.2 and newer are told from where, and a limit."""
    ask: Any = reader.latestOffset
    if not inspect.signature(ask).parameters:
        return ask()
    from pyspark.sql.streaming.datasource import ReadMaxRows  # noqa: PLC0415 - not there before 4.2

    default: Any = reader.getDefaultReadLimit  # type: ignore[attr-defined, unused-ignore]
    return ask(start, default() if rows is None else ReadMaxRows(rows))


def _rows(reader: DataSourceStreamReader, start: Any, end: Any) -> Counter[str]:
    """Return the rows between two offsets, read as tasks read them: each by a copy of the reader that has travelled."""
    found: Counter[str] = Counter()
    for partition in reader.partitions(start, end):
        there, part = cloudpickle.loads(cloudpickle.dumps((reader, partition)))  # type: ignore[no-untyped-call]
        for one in there.read(part):
            found.update(map(repr, one.to_pylist()) if isinstance(one, pa.RecordBatch) else [repr(one)])
    return found


def _steps(course: Course) -> list[tuple[Any, Any]]:
    return list(zip(course.offsets[:-1], course.offsets[1:], strict=True))


def _json(made: Made, course: Course) -> bool:
    del made
    return all(json.loads(json.dumps(offset)) == offset for offset in course.offsets)


def _begins_alike(made: Made, course: Course) -> bool:
    return bool(made.reader().initialOffset() == course.offsets[0])


def _advances(made: Made, course: Course) -> bool:
    """Between any two offsets of the way lies at least one row."""
    reader = made.reader()
    return all(_rows(reader, *step) for step in _steps(course))


def _stays_at_its_end(made: Made, course: Course) -> bool:
    """A reader that has never been asked before too: a query that is started when nothing has come."""
    end = course.offsets[-1]
    return bool(_latest(made.reader(), end) == end)


def _replayed(made: Made, course: Course) -> bool:
    """By the reader itself, and by one that is asked for the batch at once, as Spark does after a restart."""
    reader = made.reader()
    for step in _steps(course):
        rows = _rows(reader, *step)
        if rows != _rows(reader, *step) or rows != _rows(made.reader(), *step):
            return False
    return True


def _whole(made: Made, course: Course) -> bool:
    """Cut as it went, at once, and (where the source takes a limit) three rows at a time."""
    whole = _rows(made.reader(), *course.ends)
    reader, start = made.reader(), course.offsets[0]
    if inspect.signature(reader.latestOffset).parameters:
        cut: Counter[str] = Counter()
        for _ in range(100):
            end = _latest(reader, start, 3)
            if end == start:
                break
            cut += _rows(reader, start, end)
            start = end
        if cut + _rows(reader, start, course.offsets[-1]) != whole:
            return False
    return sum((_rows(reader, *step) for step in _steps(course)), Counter()) == whole


def _columns(made: Made, course: Course) -> bool:
    reader, wanted = made.reader(), made.columns.names
    for partition in reader.partitions(*course.ends):
        for one in reader.read(partition):
            names = one.schema.names if isinstance(one, pa.RecordBatch) else wanted[: len(one)]
            if names != wanted:
                return False
    return True


def _streamed(spark: SparkSession, made: Made, folder: Path, course: Course, rows: int) -> None:
    """Stream the source: the second batch (the first, of one) fails after it was read, and the next start reads it again."""
    failing = 1 if len(_steps(course)) > 1 and _goes_by_batches(made.reader()) else 0
    tries: dict[int, list[Counter[str]]] = {}

    def look(batch: DataFrame, number: int) -> None:
        tried = tries.setdefault(number, [])
        tried.append(Counter(map(repr, batch.collect())))
        if number == failing and len(tried) == 1:
            raise RuntimeError("this batch is to be read again")

    registering.register(spark, made.source)
    reading = spark.readStream.format(made.source.name()).options(**made.options)
    frame = (reading if made.schema is None else reading.schema(made.schema)).load()
    writer = frame.writeStream.foreachBatch(look).option("checkpointLocation", str(folder / "checkpoint"))
    for start in range(2):
        query = writer.trigger(availableNow=True).start()
        try:
            if not query.awaitTermination(_SECONDS):
                query.stop()
                raise AssertionError(
                    f"{made.source.__name__} breaks a law: a stream of what is there now ends; it runs for {_SECONDS} s"
                )
        except StreamingQueryException:
            if start or len(tries.get(failing, [])) != 1:
                raise
    first, *again = tries.get(failing, [Counter()])
    if again != [first]:
        raise AssertionError(
            f"{made.source.__name__} breaks a law: Spark reads a batch that failed again as it was; batch {failing} had "
            f"{[one.total() for one in (first, *again)]} rows, or other ones"
        )
    streamed = sum(tried[-1].total() for tried in tries.values())
    if streamed != rows:
        raise AssertionError(
            f"{made.source.__name__} breaks a law: a stream that fails and is started again has each row once; it had "
            f"{streamed} of {rows}"
        )


def _goes_by_batches(reader: DataSourceStreamReader) -> bool:
    """Whether a stream of what is there now has several batches; Spark makes one of it where a reader does not know that trigger."""
    return hasattr(reader, "prepareForTriggerAvailableNow")


LAWS: Final[dict[str, Law]] = {
    "offsets are JSON values": _json,
    "each start begins with the same offset": _begins_alike,
    "an offset that is new has rows before it": _advances,
    "where nothing has come the offset stays": _stays_at_its_end,
    "the same offsets give the same rows, after a restart too": _replayed,
    "however a source is cut into batches, its rows are the same": _whole,
    "rows have the columns of the schema": _columns,
}
"""What holds for every streaming source."""
