from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tests.rows import NAN, SCHEMA, multiset, split, table

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks import text_format
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.console import Console
from skypane.runtime.spark.sinks.current_front import Current
from skypane.runtime.spark.sinks.directory import Directory, Format
from skypane.runtime.spark.sinks.folder_owner import OWNER, STAGE, QueryStart
from skypane.runtime.spark.sinks.function import Call
from skypane.runtime.spark.sinks.memory import Memory
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.sinks.sink_arguments import Output, Sinks, sink
from skypane.types import CheckpointError, ConfigError

NO_SPARK = cast("SparkSession", None)
"""Directories and memories need no session."""


def checked(output: Output, late: Output | None = None) -> Sinks:
    """Return the sinks of the user's arguments, which could hold the rows."""
    sinks = Sinks.of(output, late)
    sinks.check({"output": SCHEMA, "late": SCHEMA})
    return sinks


def answers(*tables: pa.Table) -> BatchRows:
    """Answers that the driver made."""
    return BatchRows(SCHEMA, sum(rows.num_rows for rows in tables), ((0, 1),), tables)


def staged(out: Directory, tables: Sequence[pa.Table]) -> BatchRows:
    """Answers that workers wrote where the sink needs them."""
    stage = out.stage("driver")
    assert stage is not None
    names = tuple(f"run-{i}.parquet" for i in range(len(tables)))
    for name, rows in zip(names, tables, strict=True):
        stage.write_parquet(name, SCHEMA, [rows])
    return BatchRows(SCHEMA, sum(rows.num_rows for rows in tables), ((0, 1),), store=stage, files=names)


def opened(path: Path, kind: Format = "parquet") -> Directory:
    out = Directory(str(path), kind)
    out.open(QueryStart("q"))
    return out


def visible(path: Path) -> list[str]:
    return sorted(file.name for file in path.iterdir() if file.name[0] not in "._")


def content(path: Path) -> Counter[str]:
    return sum((multiset(pq.read_table(path / name)) for name in visible(path)), Counter())


ONE, TWO, THREE = (table([at], [float(at)]) for at in (1, 2, 3))


def test_a_batch_becomes_one_file_with_its_number(tmp_path: Path):
    out = opened(tmp_path)
    out.write(NO_SPARK, answers(ONE, TWO), 7)
    out.write(NO_SPARK, answers(THREE), 8)
    assert visible(tmp_path) == ["part-000000000007-00000.parquet", "part-000000000008-00000.parquet"]
    assert content(tmp_path) == multiset(pa.concat_tables([ONE, TWO, THREE]))


def test_files_of_workers_are_moved_not_copied(tmp_path: Path):
    out = opened(tmp_path)
    out.write(NO_SPARK, staged(out, [ONE, TWO]), 3)
    assert visible(tmp_path) == ["part-000000000003-00000.parquet", "part-000000000003-00001.parquet"]
    assert list((tmp_path / STAGE / "driver").iterdir()) == []
    assert content(tmp_path) == multiset(pa.concat_tables([ONE, TWO]))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which file is synchronised is read from /proc")
@pytest.mark.parametrize("by_workers", [True, False])
def test_files_are_on_the_disk_before_a_batch_counts_as_delivered(
    tmp_path: Path, by_workers: bool, monkeypatch: pytest.MonkeyPatch
):
    """Each under the name that it has on the stage; then the list of what is in the folder."""
    out, synced, moved, fsync, move = opened(tmp_path), list[Path](), list[int](), os.fsync, DocumentStore.move

    def noted(handle: int) -> None:
        fsync(handle)
        synced.append(Path(f"/proc/self/fd/{handle}").readlink())

    def checked(stage: DocumentStore, name: str, target: DocumentStore, target_name: str) -> None:
        assert Path(stage.path(name)) in synced, "a file is moved when it is whole on the disk"
        move(stage, name, target, target_name)
        moved.append(len(synced))

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(DocumentStore, "move", checked)
    out.write(NO_SPARK, staged(out, [ONE, TWO]) if by_workers else answers(ONE, TWO), 0)
    assert synced[moved[-1] :] == [tmp_path], "after the last of them was moved"
    assert len(moved) == len(visible(tmp_path)) == 1 + by_workers


@pytest.mark.parametrize("first", [0, 1, 2, 3])
@pytest.mark.parametrize("second", [0, 1, 2, 3])
def test_a_batch_delivered_twice_is_as_if_delivered_once(tmp_path: Path, first: int, second: int):
    """The second try may have more files or fewer, its rows are the same: here they differ, to see which is there."""
    out = opened(tmp_path)
    out.write(NO_SPARK, answers(ONE), 0)
    out.write(NO_SPARK, staged(out, [THREE] * first), 1)
    out.write(NO_SPARK, staged(out, [TWO] * second), 1)
    assert content(tmp_path) == multiset(pa.concat_tables([ONE, *[TWO] * second]))


def test_a_try_of_other_rows_in_the_driver_replaces_one_on_the_workers_and_the_other_way_round(tmp_path: Path):
    out = opened(tmp_path)
    out.write(NO_SPARK, staged(out, [ONE, TWO]), 1)
    out.write(NO_SPARK, answers(ONE, THREE), 1)
    assert visible(tmp_path) == ["part-000000000001-00000.parquet"]
    out.write(NO_SPARK, staged(out, [ONE, TWO]), 1)
    assert content(tmp_path) == multiset(pa.concat_tables([ONE, TWO]))


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.lists(st.integers(0, 8), max_size=3),
    st.integers(0, 4),
    st.none() | st.lists(st.integers(0, 8), max_size=3),
)
def test_files_that_a_reader_may_have_read_stay_when_a_batch_is_repeated(
    rows: list[int], cuts: list[int], moved: int, again: list[int] | None
):
    """Some files of a try are there when it dies; the next one, cut in another way or made in the driver, adds the rest."""
    whole = table(rows, [float(at) for at in rows])
    with TemporaryDirectory() as folder:
        out = opened(Path(folder))
        lost = staged(out, split(whole, sorted(min(cut, len(rows)) for cut in cuts)))
        for index, name in enumerate(lost.files[:moved]):
            (Path(folder) / STAGE / "driver" / name).rename(Path(folder) / f"part-000000000005-{index:05d}.parquet")
        before = files_of(Path(folder))
        parts = None if again is None else split(whole, sorted(min(cut, len(rows)) for cut in again))
        out.open(QueryStart("q", next_batch=5))
        out.write(NO_SPARK, answers(whole) if parts is None else staged(out, parts), 5)
        after = files_of(Path(folder))
        assert before.items() <= after.items()
        assert content(Path(folder)) == multiset(whole)
        assert [*after] == [f"part-000000000005-{index:05d}.parquet" for index in range(len(after))]
        assert [path for path in (Path(folder) / STAGE).rglob("*") if path.is_file()] == []


def test_files_of_workers_become_one_where_a_reader_needs_whole_batches(tmp_path: Path):
    out = Directory(str(tmp_path), one_file=True)
    out.open(QueryStart("q"))
    out.write(NO_SPARK, staged(out, [ONE, TWO, THREE]), 1)
    assert visible(tmp_path) == ["part-000000000001-00000.parquet"]
    assert pq.read_table(tmp_path / visible(tmp_path)[0]) == pa.concat_tables([ONE, TWO, THREE])
    before = files_of(tmp_path)
    out.write(NO_SPARK, staged(out, [TWO, ONE, THREE]), 1)
    assert files_of(tmp_path) == before
    assert [path for path in (tmp_path / STAGE).rglob("*") if path.is_file()] == []
    with pytest.raises(ConfigError, match="one_file must be True or False"):
        Directory(str(tmp_path), one_file="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_text_file_stays_when_its_rows_come_again_in_another_order(tmp_path: Path, kind: Format):
    out = opened(tmp_path, kind)
    out.write(NO_SPARK, answers(ONE, TWO), 1)
    before = files_of(tmp_path)
    out.write(NO_SPARK, answers(TWO, ONE), 1)
    assert files_of(tmp_path) == before


def files_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the number on disk and the contents of each file."""
    return {name: ((folder / name).stat().st_ino, (folder / name).read_bytes()) for name in visible(folder)}


def test_a_try_that_was_killed_halfway_is_repaired(tmp_path: Path):
    """Two of three files were moved; the next try has two others."""
    out = opened(tmp_path)
    lost = staged(out, [THREE, THREE, THREE])
    for index, name in enumerate(lost.files[:2]):
        (tmp_path / STAGE / "driver" / name).rename(tmp_path / f"part-000000000005-{index:05d}.parquet")
    out.write(NO_SPARK, staged(out, [ONE]), 5)
    assert content(tmp_path) == multiset(ONE)


def test_files_in_the_stage_are_not_answers(tmp_path: Path):
    out = opened(tmp_path)
    staged(out, [ONE])
    assert visible(tmp_path) == []
    assert pq.ParquetDataset(tmp_path).files == []


def test_a_batch_without_rows_leaves_no_file(tmp_path: Path):
    out = opened(tmp_path)
    out.write(NO_SPARK, answers(), 0)
    out.write(NO_SPARK, answers(SCHEMA.empty_table()), 1)
    assert visible(tmp_path) == []


def test_a_reader_with_the_front_open_continues_to_read_the_old_one(tmp_path: Path):
    """And a reader finds one file, whole, at any moment."""
    front, move = Current(str(tmp_path)), DocumentStore.move
    front.open(QueryStart("q"))
    front.write(NO_SPARK, answers(ONE), 0)

    def looking(stage: DocumentStore, name: str, target: DocumentStore, target_name: str) -> None:
        assert content(tmp_path) == multiset(ONE)
        move(stage, name, target, target_name)
        assert content(tmp_path) == multiset(TWO)

    with pytest.MonkeyPatch.context() as patch, pq.ParquetFile(tmp_path / "front.parquet") as open_before:
        patch.setattr(DocumentStore, "move", looking)
        front.write(NO_SPARK, answers(TWO), 1)
        assert visible(tmp_path) == ["front.parquet"]
        assert multiset(open_before.read()) == multiset(ONE)


def test_a_folder_has_one_owner(tmp_path: Path):
    opened(tmp_path).open(QueryStart("q"))  # a restart
    with pytest.raises(CheckpointError, match=f"^{tmp_path} holds the output of another query"):
        opened(tmp_path).open(QueryStart("another"))
    assert json.loads((tmp_path / OWNER).read_text(encoding="ascii"))["document"] == {"query": "q", "holds": "part"}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_text_formats_are_written_from_either_side_once(tmp_path: Path, kind: Format):
    out = opened(tmp_path / "out", kind)
    assert out.stage("driver") is None, "workers write parquet: it is read back"
    out.write(NO_SPARK, answers(ONE, TWO), 1)
    parquet = opened(tmp_path / "parquet")
    out.write(NO_SPARK, staged(parquet, [ONE, THREE]), 1)
    assert visible(tmp_path / "out") == [f"part-000000000001-00000.{kind}"]
    written = tmp_path / "out" / f"part-000000000001-00000.{kind}"
    if kind == "csv":
        read = pc_csv.read_csv(written)
        assert read.schema.names == SCHEMA.names
        assert read.column("x").to_pylist() == [1, 3]
    else:
        lines = [json.loads(line) for line in written.read_text(encoding="utf-8").splitlines()]
        assert lines == [
            {"time": f"1970-01-01T00:00:00.00000{at}+00:00", "x": float(at), "y": 1.0, "label": "r0"} for at in (1, 3)
        ]


def test_json_loses_nothing(tmp_path: Path):
    noon, shown = datetime(2024, 3, 10, 12), "2024-03-10T12:00:00"  # noqa: DTZ001 - a time without zone is meant
    money, lasted = "12345678901234567890.12", pa.array([timedelta(days=1, microseconds=1), None], pa.duration("us"))
    columns: dict[str, tuple[pa.Array, object]] = {
        "big": (pa.array([2**62 + 1, None], pa.int64()), 2**62 + 1),
        "float": (pa.array([float("inf"), NAN], pa.float64()), "Infinity"),
        "money": (pa.array([Decimal(money), None], pa.decimal128(38, 2)), money),
        "day": (pa.array([date(1, 1, 1), date(9999, 12, 31)]), "0001-01-01"),
        "local": (pa.array([noon, None], pa.timestamp("us")), shown),
        "raw": (pa.array([b"\xff", None], pa.binary()), "/w=="),
        "list": (pa.array([[{"a": -float("inf"), "at": noon}], None]), [{"a": "-Infinity", "at": shown}]),
        "pairs": (pa.array([[("k", 1.5)], None], pa.map_(pa.string(), pa.float64())), {"k": 1.5}),
        "lasted": (lasted, "INTERVAL '1 00:00:00.000001' DAY TO SECOND"),
        "text": (pa.array(['süß "\n', ""]), 'süß "\n'),
        "flag": (pa.array([True, None]), True),
    }
    rows = pa.table({name: column for name, (column, _) in columns.items()})
    opened(tmp_path, "json").write(NO_SPARK, BatchRows(rows.schema, 2, tables=(rows,)), 0)
    first, second = (tmp_path / "part-000000000000-00000.json").read_text(encoding="utf-8").splitlines()
    assert json.loads(first) == {name: written for name, (_, written) in columns.items()}
    nulls = dict.fromkeys(columns) | {"float": "NaN", "day": "9999-12-31", "text": ""}
    assert json.loads(second) == nulls


EDGES = {
    "day": (pa.date32(), "date", [-719_162, 2_932_896, -719_163, 2_932_897, -800_000, -2_000_000, 30_000_000, 0]),
    "at": (
        pa.timestamp("us", "UTC"),
        "timestamp",
        [-62_135_596_800_000_000, 253_402_300_800_000_000 - 1, 253_402_300_800_000_000, -(1 << 63), (1 << 63) - 1, -1],
    ),
    "local": (pa.timestamp("us"), "timestamp_ntz", [-62_135_596_800_000_001, 300_000_000_000_000_000, 1_500_000, 0]),
}


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
@pytest.mark.parametrize("name", EDGES)
def test_spark_reads_times_of_any_year_as_they_were(kind: Format, name: str, spark: SparkSession, tmp_path: Path):
    arrow, sql, ticks = EDGES[name]
    plain = pa.array(ticks, pa.int32() if name == "day" else pa.int64())
    rows = pa.table({"id": pa.array(range(len(ticks))), name: plain.cast(arrow)})
    opened(tmp_path, kind).write(NO_SPARK, BatchRows(rows.schema, rows.num_rows, tables=(rows,)), 0)
    reader = spark.read.schema(f"id long, {name} {sql}").option("header", value=True)
    read = getattr(reader, kind)(str(tmp_path)).toArrow().sort_by("id")
    assert read[name].cast(plain.type).to_pylist() == ticks


def test_json_keeps_times_of_any_year_inside_of_others(tmp_path: Path):
    moments = pa.array([[(1 << 63) - 1, None], None], pa.list_(pa.int64())).cast(pa.list_(pa.timestamp("us", "UTC")))
    rows = pa.table({"at": moments, "pairs": pa.array([[("k", 30_000_000)], None], pa.map_(pa.string(), pa.int32()))})
    rows = rows.cast(rows.schema.set(1, pa.field("pairs", pa.map_(pa.string(), pa.date32()))))
    opened(tmp_path, "json").write(NO_SPARK, BatchRows(rows.schema, 2, tables=(rows,)), 0)
    first, _ = (tmp_path / "part-000000000000-00000.json").read_text(encoding="utf-8").splitlines()
    assert json.loads(first) == {"at": ["+294247-01-10T04:00:54.775807+00:00", None], "pairs": {"k": "+84107-03-19"}}


@given(st.datetimes())
def test_times_of_the_usual_years_are_written_as_python_writes_them(at: datetime):
    micros = (at - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001 - a time without zone is meant
    assert text_format.moment(micros) == at.isoformat()


def test_an_unknown_format_is_refused():
    with pytest.raises(ConfigError, match=r"^output format must be parquet, csv or json, got 'orc'"):
        Directory("out", "orc")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int64()),
        pa.struct([("a", pa.int64())]),
        pa.map_(pa.string(), pa.int64()),
        pa.binary(),
        pa.large_binary(),
    ],
)
def test_csv_refuses_what_it_cannot_hold(kind: pa.DataType):
    schema = SCHEMA.append(pa.field("more", kind))
    with pytest.raises(ConfigError, match=r"^column 'more' is of type .*, which csv cannot hold"):
        Directory("out", "csv").check(schema)
    Directory("out", "csv").check(SCHEMA)
    Directory("out", "json").check(schema)
    Directory("out", "parquet").check(schema)


def test_a_memory_keeps_batches_in_order_and_replaces_one_delivered_twice():
    memory = Memory()
    with pytest.raises(LookupError, match="no batch"):
        memory.table()
    for batch_id, rows in ((0, ONE), (1, TWO), (0, THREE)):
        memory.write(NO_SPARK, answers(rows), batch_id)
    assert memory.table().equals(pa.concat_tables([THREE, TWO]))


def test_a_memory_is_for_one_query_and_one_role():
    """Others have batches of the same numbers, which would replace those that are there."""
    memory = Memory()
    memory.open(QueryStart("q", "driver-1"))
    memory.write(NO_SPARK, answers(ONE), 0)
    for other in (QueryStart("r", "driver-2"), QueryStart("q", "driver-1", role="late")):
        with pytest.raises(ConfigError, match=r"Memory\(\) keeps the output of a query.* make one for each query"):
            memory.open(other)
    memory.open(QueryStart("q", "driver-3", next_batch=1))  # the next start
    memory.write(NO_SPARK, answers(TWO), 1)
    assert memory.table().equals(pa.concat_tables([ONE, TWO]))


def test_a_memory_is_bounded():
    memory = Memory(batches=2)
    for batch_id in range(100):
        memory.write(NO_SPARK, answers(table([batch_id])), batch_id)
        assert len(memory._tables) <= 2
    assert memory.table().equals(pa.concat_tables([table([98]), table([99])]))
    with pytest.raises(ConfigError, match=r"^Memory\(batches\) must be a whole number of at least 1, got 0$"):
        Memory(batches=0)


def test_answers_without_a_window_are_a_table_without_rows():
    assert answers().table().equals(SCHEMA.empty_table())


def test_a_callable_gets_a_dataframe_and_the_batch(spark: SparkSession, tmp_path: Path):
    """Times without zone stay without, wherever the rows lie: the driver's table, the workers' files."""
    seen: list[tuple[int, list[tuple[str, str]], Counter[str]]] = []

    def function(df: DataFrame, batch_id: int) -> None:
        seen.append((batch_id, df.dtypes, multiset(df.toArrow())))

    local = SCHEMA.append(pa.field("local", pa.timestamp("us")))
    rows = ONE.append_column(local.field("local"), pa.array([datetime(2024, 3, 10, 2, 30)], pa.timestamp("us")))  # noqa: DTZ001
    stage = opened(tmp_path).stage("driver")
    assert stage is not None
    stage.write_parquet("run.parquet", local, [rows])
    in_files = BatchRows(local, 1, store=stage, files=("run.parquet",))
    for batch_id, each in enumerate([BatchRows(local, 1, tables=(rows,)), in_files, BatchRows(local, 0)]):
        Call(function).write(spark, each, batch_id)
    kinds = [("time", "timestamp"), ("x", "double"), ("y", "double"), ("label", "string"), ("local", "timestamp_ntz")]
    assert seen == [(0, kinds, multiset(rows)), (1, kinds, multiset(rows)), (2, kinds, Counter())]


def test_a_console_prints_batches_that_have_rows(spark: SparkSession, capsys: pytest.CaptureFixture[str]):
    Console(rows=1).write(spark, answers(ONE, TWO), 4)
    printed = capsys.readouterr().out
    assert "batch 4: 1 window, 2 rows" in printed
    assert "only showing top 1 row" in printed
    Console().write(spark, answers(), 5)
    assert capsys.readouterr().out == ""


def test_output_and_late_are_two_folders_however_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    uris = (f"file:{tmp_path}/out", f"file://{tmp_path}/link")
    for other in ("out/", "x/../out", "./out", "link", *uris, tmp_path / "out"):
        with pytest.raises(ConfigError, match=f"^output and late must be two folders, both are {tmp_path}/out$"):
            checked("out", other)
    with pytest.raises(ConfigError, match=r"both are s3://bucket/out$"):
        checked("s3a://bucket/out", Directory("s3://bucket/out/", "csv"))
    assert checked("out") == Sinks(Directory("out"))


def test_answers_and_late_rows_have_different_names_and_folders(tmp_path: Path):
    """Two mounts of one folder look like two places: the files there show it."""
    for taker in checked(tmp_path / "out", tmp_path / "late").by_role.values():
        taker.open(QueryStart("q"))
        taker.write(NO_SPARK, answers(ONE), 0)
    assert visible(tmp_path / "out") == ["part-000000000000-00000.parquet"]
    assert visible(tmp_path / "late") == ["late-000000000000-00000.parquet"]
    with pytest.raises(CheckpointError, match="holds the answers of this query, so late rows cannot be written there"):
        Directory(str(tmp_path / "out")).for_rejected().open(QueryStart("q"))


@pytest.mark.parametrize("path", ["", "dbfs:/x", "file://host/x"])
def test_an_output_that_cannot_be_written_is_refused_at_the_call(path: str):
    with pytest.raises(ConfigError, match=r"^output"):
        checked(path)


def test_a_user_defined_sink_must_only_write():
    class Count(Sink):
        row_count = 0

        def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
            del spark, batch_id
            self.row_count += answers.row_count

    mine = Count()
    assert checked(mine, mine) == Sinks(mine, mine)
    mine.open(QueryStart("q"))
    assert mine.stage("driver") is None
    mine.write(NO_SPARK, answers(ONE), 0)
    assert mine.row_count == 1


def test_whatever_a_user_means_becomes_a_sink(tmp_path: Path):
    def function(df: DataFrame, batch_id: int) -> None: ...

    assert sink("out") == Directory("out")
    assert sink(tmp_path) == Directory(str(tmp_path))
    assert sink(function) == Call(function)
    for made in (Directory("out", "csv"), Console(), Memory()):
        assert isinstance(made, Sink)
        assert sink(made) is made


@pytest.mark.parametrize("output", [None, 7, Memory, Console, ["out"]])
def test_an_invalid_output_is_refused(output: Any):
    with pytest.raises(
        ConfigError,
        match=r"^output must be a path, Console, Delta, Directory, Foreach, Iceberg, Jdbc, Kafka, Memory, Table, or a function",
    ):
        sink(output)


def test_rows_after_a_piece_without_rows_reach_a_sink_that_takes_a_dataframe(spark: SparkSession):
    rows = pa.table({"x": [1, 2]})
    pieces = pa.concat_tables([rows.slice(0, 1), rows.slice(0, 0), rows.slice(1, 1)])
    assert pieces.column("x").num_chunks == 3
    frame = BatchRows(rows.schema, row_count=2, tables=(rows.slice(0, 0), pieces)).dataframe(spark)
    assert [row.x for row in frame.collect()] == [1, 2]
