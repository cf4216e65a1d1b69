"""Check the laws of a streaming source: of its reader as Spark calls it, and of a stream that fails and is restarted.

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

from skypane.runtime.spark.sources import registration

_MOST_BATCHES: Final = 10_000
"""A source that has not ended after this many batches counts as endless."""
_SECONDS: Final = 300


@dataclass(frozen=True)
class ReaderFactory:
    """Makes readers of a source, each as a new driver start does."""

    source: type[DataSource]
    options: Mapping[str, str]
    schema: StructType | None

    def reader(self) -> DataSourceStreamReader:
        """Return a new reader."""
        one = self.source(dict(self.options))
        return one.streamReader(self.columns)

    @property
    def columns(self) -> StructType:
        """The columns of the rows."""
        if self.schema is not None:
            return self.schema
        schema = self.source(dict(self.options)).schema()
        return schema if isinstance(schema, StructType) else _columns_of(str(schema))


@dataclass(frozen=True)
class OffsetCourse:
    """The offsets of a reader, from the first one to the end of the source."""

    offsets: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first and the last offset."""
        return self.offsets[0], self.offsets[-1]


Law = Callable[[ReaderFactory, OffsetCourse], bool]


def check_source(
    spark: SparkSession,
    source: type[DataSource],
    options: Mapping[str, str],
    folder: Path,
    *,
    schema: StructType | str | None = None,
) -> None:
    """Raise AssertionError, which names the law, if a source breaks one; `folder` holds a checkpoint.

    options   options of a source that ends and does not grow during the check; they should limit the rows of a
              micro-batch if the source has such an option, so that there are several
    schema    the columns of the rows, if users must pass them to the source
    """
    made = ReaderFactory(source, options, _columns_of(schema) if isinstance(schema, str) else schema)
    course = _course(made)
    for law, keeps in LAWS.items():
        if not keeps(made, course):
            raise AssertionError(f"{source.__name__} breaks a law: {law}; with the options {dict(options)}")
    if len(course.offsets) == 1:
        raise AssertionError(f"options must give a source with rows; {source.__name__} has none with {dict(options)}")
    rows = _rows(made.reader(), *course.ends)
    _streamed(spark, made, folder, course, rows.total())


def _columns_of(ddl: str) -> StructType:
    columns = StructType.fromDDL(ddl)
    assert isinstance(columns, StructType)  # noqa: S101 - the text has names and types
    return columns


def _course(made: ReaderFactory) -> OffsetCourse:
    """Return the offsets of one reader up to the end of the source."""
    reader = made.reader()
    offsets = [reader.initialOffset()]
    while len(offsets) < _MOST_BATCHES:
        after = _latest(reader, offsets[-1])
        if after == offsets[-1]:
            return OffsetCourse(tuple(offsets))
        offsets.append(after)
    raise AssertionError(
        f"{made.source.__name__} breaks a law: the offsets of a source that does not grow end; after {_MOST_BATCHES} "
        f"batches the offset is {offsets[-1]!r}"
    )


def _latest(reader: DataSourceStreamReader, start: Any, rows: int | None = None) -> Any:
    """Return the end offset of a batch from `start`; since PySpark 4.2, latestOffset() takes the start and a limit."""
    ask: Any = reader.latestOffset
    if not inspect.signature(ask).parameters:
        return ask()
    from pyspark.sql.streaming.datasource import ReadMaxRows  # noqa: PLC0415 - new in 4.2

    default: Any = reader.getDefaultReadLimit  # type: ignore[attr-defined, unused-ignore]
    return ask(start, default() if rows is None else ReadMaxRows(rows))


def _rows(reader: DataSourceStreamReader, start: Any, end: Any) -> Counter[str]:
    """Return the rows between two offsets, read as in tasks: each partition by an unpickled copy of the reader."""
    found: Counter[str] = Counter()
    for partition in reader.partitions(start, end):
        there, part = cloudpickle.loads(cloudpickle.dumps((reader, partition)))  # type: ignore[no-untyped-call]
        for one in there.read(part):
            found.update(map(repr, one.to_pylist()) if isinstance(one, pa.RecordBatch) else [repr(one)])
    return found


def _steps(course: OffsetCourse) -> list[tuple[Any, Any]]:
    return list(zip(course.offsets[:-1], course.offsets[1:], strict=True))


def _json(made: ReaderFactory, course: OffsetCourse) -> bool:
    del made
    return all(json.loads(json.dumps(offset)) == offset for offset in course.offsets)


def _begins_alike(made: ReaderFactory, course: OffsetCourse) -> bool:
    return bool(made.reader().initialOffset() == course.offsets[0])


def _advances(made: ReaderFactory, course: OffsetCourse) -> bool:
    """Check that there is at least one row between any two successive offsets."""
    reader = made.reader()
    return all(_rows(reader, *step) for step in _steps(course))


def _stays_at_its_end(made: ReaderFactory, course: OffsetCourse) -> bool:
    """Call a new reader at the end, as in a query that starts when there are no new rows."""
    end = course.offsets[-1]
    return bool(_latest(made.reader(), end) == end)


def _replayed(made: ReaderFactory, course: OffsetCourse) -> bool:
    """Read each batch twice, and once with a new reader, as Spark does after a restart."""
    reader = made.reader()
    for step in _steps(course):
        rows = _rows(reader, *step)
        if rows != _rows(reader, *step) or rows != _rows(made.reader(), *step):
            return False
    return True


def _whole(made: ReaderFactory, course: OffsetCourse) -> bool:
    """Compare the rows of all batches, of one batch, and, if the source takes a limit, of batches of three rows."""
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


def _columns(made: ReaderFactory, course: OffsetCourse) -> bool:
    reader, wanted = made.reader(), made.columns.names
    for partition in reader.partitions(*course.ends):
        for one in reader.read(partition):
            names = one.schema.names if isinstance(one, pa.RecordBatch) else wanted[: len(one)]
            if names != wanted:
                return False
    return True


def _streamed(spark: SparkSession, made: ReaderFactory, folder: Path, course: OffsetCourse, rows: int) -> None:
    """Stream the source; the second batch (or the only one) fails after it was read, and is read again."""
    failing = 1 if len(_steps(course)) > 1 and _goes_by_batches(made.reader()) else 0
    tries: dict[int, list[Counter[str]]] = {}

    def record(batch: DataFrame, number: int) -> None:
        tried = tries.setdefault(number, [])
        tried.append(Counter(map(repr, batch.collect())))
        if number == failing and len(tried) == 1:
            raise RuntimeError("this batch fails on purpose, to be read again")

    registration.register(spark, made.source)
    reading = spark.readStream.format(made.source.name()).options(**made.options)
    frame = (reading if made.schema is None else reading.schema(made.schema)).load()
    writer = frame.writeStream.foreachBatch(record).option("checkpointLocation", str(folder / "checkpoint"))
    for start in range(2):
        query = writer.trigger(availableNow=True).start()
        try:
            if not query.awaitTermination(_SECONDS):
                query.stop()
                raise AssertionError(
                    f"{made.source.__name__} breaks a law: a stream with trigger availableNow ends; after "
                    f"{_SECONDS} s it still runs"
                )
        except StreamingQueryException:
            if start or len(tries.get(failing, [])) != 1:
                raise
    first, *again = tries.get(failing, [Counter()])
    if again != [first]:
        raise AssertionError(
            f"{made.source.__name__} breaks a law: a failed batch is read again with the same rows; the tries of batch "
            f"{failing} had {[one.total() for one in (first, *again)]} rows, or different ones"
        )
    streamed = sum(tried[-1].total() for tried in tries.values())
    if streamed != rows:
        raise AssertionError(
            f"{made.source.__name__} breaks a law: a stream that fails and is restarted has each row once; it had "
            f"{streamed} of {rows} rows"
        )


def _goes_by_batches(reader: DataSourceStreamReader) -> bool:
    """Return whether trigger availableNow makes several batches; without this method of the reader it makes one."""
    return hasattr(reader, "prepareForTriggerAvailableNow")


LAWS: Final[dict[str, Law]] = {
    "offsets are JSON values": _json,
    "each driver start begins with the same offset": _begins_alike,
    "there are rows before each new offset": _advances,
    "without new rows the offset stays the same": _stays_at_its_end,
    "the same offsets give the same rows, also after a restart": _replayed,
    "a source gives the same rows, however it is cut into batches": _whole,
    "rows have the columns of the schema": _columns,
}
"""Laws of every streaming source."""
