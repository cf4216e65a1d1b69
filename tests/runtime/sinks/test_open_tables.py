"""Tables of open formats, Delta and Iceberg, as outputs: what holds for both, whatever happens to the drivers and beside them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.rows_of_batches import NO_SPARK, SCHEMA, VERSIONS, numbers, of
from tests.runtime.table_histories import History, Interposed, Killed, dies_after, dies_before, steps_of, write_at_once
from tests.runtime.table_places import PARTITIONS, PLACES, PROPERTY, IcebergPlace, OpenPlace

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import CheckpointError, ConfigError

BOUNDS = (SCHEMA.field("window_start"), SCHEMA.field("window_end"))
CITY, N = SCHEMA.field("city"), SCHEMA.field("n")


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> OpenPlace:
    return PLACES[request.param](tmp_path)


@pytest.fixture
def interposed(place: OpenPlace, monkeypatch: pytest.MonkeyPatch) -> Interposed:
    return place.interposed(monkeypatch)


def after(happens: Callable[[], object]) -> Callable[[Callable[[], Any]], Any]:
    """Return the step of a commit before which something happens."""

    def step(commit: Callable[[], Any]) -> Any:
        happens()
        return commit()

    return step


def test_a_batch_that_comes_again_makes_no_version_of_the_table(place: OpenPlace):
    place.started().write(NO_SPARK, numbers(3, 13), 0)
    second = place.started(0, driver="driver-2")
    version = place.version()
    second.write(NO_SPARK, numbers(13, 3), 0)
    assert place.version() == version


def test_a_driver_that_dies_before_or_after_a_commit_leaves_the_batch_once(place: OpenPlace, interposed: Interposed):
    for batch, step in enumerate((dies_before, dies_after)):
        sink = place.started(batch, driver=f"driver-{batch}")
        interposed.step = step
        with pytest.raises(Killed):
            sink.write(NO_SPARK, numbers(batch, 10 + batch), batch)
        place.started(batch, driver=f"driver-{batch}b").write(NO_SPARK, numbers(batch, 10 + batch), batch)
    assert place.rows() == [0, 1, 10, 11]


@pytest.mark.parametrize("outcome", ["loses the reply", "is lost"])
def test_a_commit_whose_reply_is_lost_is_there_once(place: OpenPlace, interposed: Interposed, outcome: str):
    sink = place.started()
    interposed.step = interposed.outcomes[outcome]
    sink.write(NO_SPARK, numbers(1), 0)
    sink.write(NO_SPARK, numbers(2), 1)
    assert place.rows() == [1, 2]


def test_a_driver_that_was_frozen_before_its_commit_adds_nothing_after_its_successor(
    place: OpenPlace, interposed: Interposed
):
    """Its successor has written that batch, and two more; the commit is refused, and it finds another name in the note."""
    frozen = place.started(driver="driver-1")
    frozen.write(NO_SPARK, numbers(0), 0)

    def another_writes() -> None:
        successor = place.started(1, driver="driver-2")
        for batch in (1, 2, 3):
            successor.write(NO_SPARK, numbers(batch), batch)

    interposed.step = after(another_writes)
    with pytest.raises(CheckpointError, match="another driver of this query has started and taken over"):
        frozen.write(NO_SPARK, numbers(1), 1)
    assert place.rows() == [0, 1, 2, 3]


def test_a_driver_that_was_frozen_while_its_successor_only_started_adds_nothing(
    place: OpenPlace, interposed: Interposed
):
    frozen = place.started(driver="driver-1")
    interposed.step = after(lambda: place.started(driver="driver-2"))
    with pytest.raises(CheckpointError, match="taken over"):
        frozen.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == []


def test_a_driver_that_is_fenced_while_it_opens_the_sink_takes_nothing(place: OpenPlace, interposed: Interposed):
    """It was frozen between the look at its claim and its commit, which is refused; it looks again."""
    place.started().write(NO_SPARK, numbers(0), 0)
    successor: list[Sink] = []

    def fenced() -> None:
        if successor:
            raise CheckpointError("another driver has taken over")

    interposed.step = after(lambda: successor.append(place.started(1, driver="driver-2")))
    with pytest.raises(CheckpointError, match="another driver has taken over"):
        place.started(1, driver="driver-1", check=fenced)
    successor[0].write(NO_SPARK, numbers(1), 1)
    assert place.rows() == [0, 1]


@pytest.mark.long
@pytest.mark.parametrize("name", PLACES)
@given(data=st.data())
def test_any_sequence_of_deliveries_kills_and_starts_leaves_each_batch_once(name: str, data: st.DataObject):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        place = PLACES[name](Path(folder))
        steps = data.draw(st.lists(st.sampled_from(steps_of(place.maintenance)), max_size=10))
        history = History(place, place.interposed(patched), iter(steps))
        history.play()
        history.check()


def test_readers_see_a_version_at_once(place: OpenPlace, interposed: Interposed):
    """The rows that go and those that come are one commit: what is read before it has the version before."""
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (1, 0, False, "Oslo", 2)), 0)
    seen: list[Any] = []

    def read(commit: Callable[[], Any]) -> Any:
        seen.append(place.rows())
        committed = commit()
        seen.append(place.rows())
        return committed

    interposed.step = read
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, False, "Rome", 7)), 1)
    assert seen == [[1, 2], [2, 7]]


@pytest.mark.parametrize("alone", [{"role": "front"}, {"schema": VERSIONS}])
def test_a_table_from_which_a_query_removes_rows_belongs_to_it(place: OpenPlace, alone: dict[str, Any]):
    place.started(schema=VERSIONS).write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1)), 0)
    for claim in (alone, {}):
        with pytest.raises(
            CheckpointError, match=r"has the output of query q, .* remove its property 'skypane\.batches"
        ):
            place.started(**{"query": "another", "schema": VERSIONS, **claim})
    assert place.rows() == [1]


def test_a_batch_follows_the_rows_that_another_writer_adds_meanwhile(place: OpenPlace, interposed: Interposed):
    """With the same files: Delta needs no second try."""
    sink = place.started()
    interposed.step = after(lambda: place.foreign(-1))
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == [-1, 1]
    assert len(list(place.folder.rglob("*.parquet"))) == 2


@pytest.mark.long
def test_queries_that_write_into_one_table_at_once_lose_and_double_nothing(place: OpenPlace):
    """Iceberg's catalog refuses all but one of the commits that are tried together; the others are tried again."""
    written = write_at_once([place.started(query=f"q{at}") for at in range(3)])
    assert place.rows() == written


@pytest.mark.parametrize(
    ("kind", "maintained"), [(kind, one) for kind, place in PLACES.items() for one in place(Path()).maintenance]
)
def test_maintenance_between_two_starts_hides_no_batch(tmp_path: Path, kind: str, maintained: str):
    place = PLACES[kind](tmp_path)
    sink = place.started()
    for batch in range(3):
        sink.write(NO_SPARK, numbers(batch), batch)
    place.foreign(-1)
    place.maintenance[maintained]()
    if isinstance(place, IcebergPlace):
        place.expire()
        assert place.version() == 1
    second = place.started(2, driver="driver-2")
    for batch in (2, 3):
        second.write(NO_SPARK, numbers(batch), batch)
    assert place.rows() == [-1, 0, 1, 2, 3]


@pytest.mark.parametrize(("kind", "partition"), [
    ("delta", None), ("delta", "city"), ("delta", "window_start"),
    ("iceberg", None), ("iceberg", "city"), *(("iceberg", one) for one in PARTITIONS),
])  # fmt: skip
def test_a_version_of_a_window_replaces_its_rows_and_an_empty_one_leaves_none(
    tmp_path: Path, kind: str, partition: str | None
):
    """In a table of the sink, and in tables with partitions, and one more column, that were there before."""
    place = PLACES[kind](tmp_path)
    if partition is not None:
        others = [pa.field(name, VERSIONS.field(name).type) for name in ("window_end", "city", "n", "version")]
        place.create(pa.field("note", pa.string()), *others, VERSIONS.field("window_start"), partition=partition)
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (0, 0, False, "Rome", 2), (1, 0, False, "Oslo", 3)), 0)
    again = of(VERSIONS, (0, 1, False, "Rome", 4), (1, 1, True, None, None), (2, 0, False, "Oslo", 9))
    for _ in range(2):
        sink.write(NO_SPARK, again, 1)
    assert place.rows("city", "n", "version") == [("Oslo", 9, 0), ("Rome", 4, 1)]
    sink.write(NO_SPARK, of(VERSIONS, (0, 2, True, None, None)), 2)
    assert place.rows("city", "n", "version") == [("Oslo", 9, 0)]
    sink.write(NO_SPARK, of(VERSIONS, (2, 1, True, None, None)), 3)
    assert place.rows() == []
    sink.write(NO_SPARK, of(VERSIONS, (1, 2, False, "Bern", 5)), 4)
    assert place.rows("city", "n", "version") == [("Bern", 5, 2)]


def test_a_version_that_meets_a_compaction_replaces_its_rows(place: OpenPlace, interposed: Interposed):
    sink = place.started(schema=VERSIONS)
    for batch in range(3):
        sink.write(NO_SPARK, of(VERSIONS, (batch, 0, False, "Oslo", batch)), batch)
    interposed.step = after(place.join_files)
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, False, "Rome", 7)), 3)
    assert place.rows() == [1, 2, 7]


def test_a_table_and_a_checkpoint_that_are_both_taken_back_continue_together(
    place: OpenPlace, caplog: pytest.LogCaptureFixture
):
    """That the property is gone is reported in the log."""
    first = place.started()
    for batch in range(3):
        first.write(NO_SPARK, numbers(batch), batch)
    place.roll_back()
    assert place.rows() == [0]
    with pytest.raises(CheckpointError, match=rf"rolled back, too, remove its property '{PROPERTY}'"):
        place.started(1)
    place.note(None)
    second = place.started(1, driver="driver-2")
    assert f"no property {PROPERTY}, the note of this query's batches: batch 1 is written" in caplog.text
    for batch in (1, 2):
        second.write(NO_SPARK, numbers(batch), batch)
    assert place.rows() == [0, 1, 2]


def test_a_table_that_was_removed_and_made_again_under_a_running_query_is_refused(place: OpenPlace):
    """Also where the new one has as many commits as the old one had."""
    sink = place.started()
    for batch in range(3):
        sink.write(NO_SPARK, numbers(batch), batch)
    place.drop()
    place.create(*SCHEMA)
    for number in range(4):
        place.foreign(-number)
    with pytest.raises(CheckpointError, match=rf"lost its property '{PROPERTY}'"):
        sink.write(NO_SPARK, numbers(3), 3)
    assert place.rows() == [-3, -2, -1, 0]


@pytest.mark.parametrize("text", ['{"next_batch": 3', "[]", '{"query": "q", "role": "output", "later": 1}'])
@pytest.mark.parametrize("query", ["q", "another"])
def test_a_property_that_cannot_be_read_is_named(place: OpenPlace, query: str, text: str):
    """Also that of another query, which a later version of skypane may have written."""
    place.started()
    place.note(text)
    with pytest.raises(CheckpointError, match=rf"table \S+ has the property '{PROPERTY}', which"):
        place.started(query=query, driver="driver-2")


TYPES: dict[str, tuple[pa.DataType, Any]] = {
    "yes": (pa.bool_(), True),
    "byte": (pa.int8(), -7),
    "small": (pa.int16(), -7),
    "large": (pa.int64(), -(2**62)),
    "price": (pa.float64(), 0.1),
    "rate": (pa.float32(), 0.5),
    "none": (pa.float64(), float("inf")),
    "exact": (pa.decimal128(20, 3), Decimal("12345678901234567.125")),
    "text": (pa.string(), 'a,"b"\n%s'),
    "bytes": (pa.binary(), b"\x00\xff"),
    "day": (pa.date32(), date(2026, 1, 2)),
    "plain": (pa.timestamp("us"), datetime.fromisoformat("2026-01-02T03:04:05.000006")),
    "list": (pa.list_(pa.int64()), [1, None]),
    "pair": (pa.struct([("a", pa.string()), ("at", pa.timestamp("us", "UTC"))]),
             {"a": "ü", "at": datetime(2026, 1, 2, tzinfo=UTC)}),
    "map": (pa.map_(pa.string(), pa.int64()), [("x", 1)]),
}  # fmt: skip
NAMES = {"delta": 'a.b-100%"sure"`', "iceberg": 'a.b 100% "sure"'}
"""Names of columns with signs of all kinds: Delta takes no spaces."""


@pytest.mark.parametrize("kind", PLACES)
def test_values_of_every_type_and_nulls_come_back(tmp_path: Path, kind: str):
    place, types = PLACES[kind](tmp_path), {**TYPES, NAMES[kind]: (pa.int64(), 1)}
    schema = pa.schema([(name, of_column) for name, (of_column, _) in types.items()])
    rows = pa.Table.from_pylist([{name: value for name, (_, value) in types.items()}, {}], schema)
    for batch in range(2):  # the second into a table that is there
        sink = place.started(batch, schema=schema, driver=f"driver-{batch}")
        sink.write(NO_SPARK, BatchRows(schema, 2, ((0, 2),), (rows,)), batch)
    assert place.read().to_pylist() == rows.to_pylist() * 2


@pytest.mark.parametrize(("kind", "micros"), [("delta", [1_000_001, 2**62, -(2**62)]), ("iceberg", [1_000_001])])
def test_moments_are_the_same_whatever_their_zone_and_how_far_they_are(tmp_path: Path, kind: str, micros: list[int]):
    """PyIceberg takes none outside of the years 1 to 9999."""
    place, schema = PLACES[kind](tmp_path), pa.schema([("moment", pa.timestamp("us", "Europe/Oslo"))])
    rows = pa.table([pa.array(micros, pa.int64()).cast(schema.field(0).type)], schema)
    place.started(schema=schema).write(NO_SPARK, BatchRows(schema, len(micros), (), (rows,)), 0)
    moments = place.read()["moment"]
    assert (moments.type, moments.cast(pa.int64()).to_pylist()) == (pa.timestamp("us", "UTC"), micros)


@pytest.mark.parametrize(("columns", "message"), [
    ((BOUNDS[1], CITY, N), r"has no column 'window_start', which the rows have: ALTER .* ADD COLUMNS \(`window_start` timestamp\)"),
    ((*BOUNDS, pa.field("city", pa.int64()), N), "column 'city' is (int64|long), and the rows have string: cast it in"),
    ((pa.field("window_start", pa.timestamp("us")), BOUNDS[1], CITY, N),
     r"column 'window_start' is timestamp(\[us\], and the rows have timestamp\[us, tz=UTC\]|, and the rows have timestamptz)"),
    ((*BOUNDS, CITY, pa.field("n", pa.int32())), "column 'n' is (int32, and the rows have int64|int, and the rows have long)"),
    ((*BOUNDS, CITY, N, pa.field("id", pa.int64(), nullable=False)), "has the column 'id', which must have a value in"),
])  # fmt: skip
def test_a_table_that_cannot_take_the_rows_is_refused_at_the_start(
    place: OpenPlace, columns: tuple[pa.Field, ...], message: str
):
    place.create(*columns)
    before = place.version()
    with pytest.raises(ConfigError, match=message):
        place.started()
    assert place.version() == before


@pytest.mark.parametrize(("rows", "column"), [
    (pa.decimal128(20, 3), pa.decimal128(38, 0)),
    (pa.decimal128(20, 3), pa.decimal128(10, 3)),
    (pa.binary(), pa.string()),
    (pa.float64(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.list_(pa.string()), pa.list_(pa.int64())),
    (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32())),
    (pa.struct([("a", pa.int64())]), pa.struct([pa.field("a", pa.int64(), nullable=False)])),
    (pa.struct([("a", pa.int64())]), pa.struct([("b", pa.int64())])),
])  # fmt: skip
def test_a_column_that_does_not_hold_the_values_is_refused_at_the_start(
    place: OpenPlace, rows: pa.DataType, column: pa.DataType
):
    place.create(pa.field("x", column))
    with pytest.raises(ConfigError, match=r"column 'x' is .*, and the rows have .*: cast it in the query"):
        place.started(schema=pa.schema([("x", rows)]))


def test_a_column_may_need_values(place: OpenPlace):
    needed = [pa.field(one.name, one.type, nullable=False) for one in (*BOUNDS, CITY)]
    place.create(*needed, N, pa.field("x", pa.int32()))
    sink = place.started()
    sink.write(NO_SPARK, numbers(1), 0)
    assert place.rows("city", "n", "x") == [("Oslo", 1, None)]
    with pytest.raises(ConfigError, match=r"column 'city' must have a value in each row .*DROP NOT NULL"):
        sink.write(NO_SPARK, of(SCHEMA, (0, None, 5)), 1)


def test_partitions_by_a_column_that_the_rows_lack_are_refused(place: OpenPlace):
    place.create(*SCHEMA, pa.field("day", pa.date32()), partition="day")
    with pytest.raises(ConfigError, match="is partitioned by the column 'day', which the rows do not have"):
        place.started()
