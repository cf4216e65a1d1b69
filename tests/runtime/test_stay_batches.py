"""A batch of stays that comes again after a kill, and the sinks that take stays."""

from __future__ import annotations

import uuid
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.reporting.made import batch
from tests.rows import SKYLINE, multiset, table, tables, windows
from tests.runtime.streams import AnySession, parquet_rows
from tests.stores.memory import in_memory

import skypane as sp
from skypane.operators.open_panes import OpenPanes
from skypane.operators.stay_columns import expanded, one_by_one
from skypane.operators.window_query import WindowQuery
from skypane.plan import Plan
from skypane.reporting import snapshot
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Format
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.repeated_batch import missing_rows
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.types import ConfigError
from skypane.windows import Windows

DRIVER = "driver-000001"
NO_SPARK = cast("SparkSession", None)


def pieces(rows: pa.Table, w: Windows, cuts: list[int]) -> list[pa.Table]:
    """Return the stays of all windows that hold a row, in runs that are cut at these places."""
    plan = Plan(SKYLINE, w, "time", answers="stays")
    times = rows["time"].cast(pa.int64()).to_pylist()
    by_pane = [(w.pane_at(time), rows.slice(at, 1)) for at, time in enumerate(times)]
    tasks = OpenPanes[pa.Table].empty(w).add(by_pane).all_windows()
    query, found = plan.window_query(rows.schema), []
    for begin, end in pairwise(sorted({0, len(tasks), *(cut % (len(tasks) + 1) for cut in cuts)})):
        found += [some.rows for some in query.worker().stays(tasks[begin:end], lambda partial: partial)]
    return [plan.output_schema(rows.schema).empty_table(), *found]


def batch_of(tables: list[pa.Table]) -> BatchRows:
    """Return a batch of answers; how many rows its windows have is not looked at."""
    rows = sum(some.num_rows for some in tables)
    return BatchRows(tables[0].schema, rows, ((0, rows),), tuple(tables), driver=DRIVER)


CUTS = st.lists(st.integers(0, 99), max_size=3)


@given(tables(), windows(), CUTS, CUTS, st.data())
def test_a_batch_that_is_cut_into_other_stays_adds_the_rows_that_are_missing(
    rows: pa.Table, w: Windows, first: list[int], second: list[int], data: st.DataObject
):
    published = pieces(rows, w, first)
    published = published[: data.draw(st.integers(1, len(published)))]
    whole = pa.concat_tables(pieces(rows, w, second))
    missing = missing_rows(batch_of([whole]), pa.concat_tables(published))
    assert missing is not None
    assert missing.schema.equals(whole.schema)
    together = pa.concat_tables([*published, missing])
    assert multiset(expanded(together)) == multiset(expanded(whole))


def test_a_batch_with_other_rows_is_another_batch():
    w = Windows(9, 1)
    other = pa.concat_tables(pieces(table([0, 4], [1.0, 1.0], [1.0, 1.0]), w, []))
    assert missing_rows(batch_of(pieces(table([0, 5]), w, [])), other) is None


def test_rejected_rows_of_a_folder_of_stays_are_not_cut(tmp_path: Path):
    """They have the columns of stays, but each is a row: other rows replace them, whatever windows those stand for."""
    late = Sinks.of(print, tmp_path / "late").late
    assert late is not None
    late.open(QueryStart("query", DRIVER, 0, None))
    _, stays = pieces(table([0, 3], [2.0, 1.0], [1.0, 1.0]), Windows(9, 1), [])
    rejected = stays.append_column("reason", pa.array(["late"] * stays.num_rows))
    for rows in (rejected, one_by_one(rejected)):
        late.write(NO_SPARK, BatchRows(rows.schema, rows.num_rows, tables=(rows,), driver=DRIVER), 0)
        assert multiset(parquet_rows(tmp_path / "late")) == multiset(rows)


@pytest.mark.parametrize("folder", ["here", "in a store"])
@pytest.mark.parametrize("first", ["windows", "stays"])
def test_a_batch_that_comes_again_in_the_other_form_is_there_once(first: str, folder: str, tmp_path: Path):
    """The form was changed after a kill between a delivery and its commit: the files get the new columns."""
    w, rows = Windows(9, 1), table([0, 3], [2.0, 1.0], [1.0, 1.0])
    stays = pa.concat_tables(pieces(rows, w, []))
    forms = {"stays": stays, "windows": expanded(stays)}
    second = "stays" if first == "windows" else "windows"
    with nullcontext() if folder == "here" else in_memory():
        out = sp.Directory(str(tmp_path / "out") if folder == "here" else f"s3://bucket/{uuid.uuid4().hex}")
        for number, form in enumerate((first, second, second), 1):
            out.open(QueryStart("query", f"driver-{number}", 0))
            batch = replace(batch_of([forms[form]]), driver=f"driver-{number}", first=True)
            out.write(NO_SPARK, batch, 0)
            found = [out.store.read_parquet(name, forms[form].schema) for name in out.store.names() if name[0] == "p"]
            assert multiset(pa.concat_tables(found)) == multiset(forms[form])


def test_files_that_a_reader_has_seen_stay_as_they_are(tmp_path: Path):
    """The batch comes again, cut at another window: what is there is not replaced, and a reader finds each row once."""
    w = Windows(20, 1)
    rows = table([0, 3, 7, 12], [1.0, 2.0, 3.0, 0.0], [1.0, 2.0, 3.0, 0.0])
    sink = sp.Directory(str(tmp_path / "out"))
    sink.open(QueryStart("query", DRIVER, 0, None))

    def write(parts: list[pa.Table]) -> None:
        stage = sink.stage(DRIVER)
        assert stage is not None
        names = tuple(f"run-{at}.parquet" for at in range(len(parts)))
        for name, part in zip(names, parts, strict=True):
            stage.write_parquet(name, part.schema, [part])
        sink.write(NO_SPARK, replace(batch_of(parts), tables=(), store=stage, files=names), 0)

    _, *first = pieces(rows, w, [10])
    assert len(first) == 2
    write(first[:1])
    (file,) = sorted((tmp_path / "out").glob("*.parquet"))
    before = file.read_bytes()
    _, *again = pieces(rows, w, [7])
    for _ in range(2):
        write(again)
        assert file.read_bytes() == before
        wanted = multiset(expanded(pa.concat_tables(again)))
        assert multiset(expanded(parquet_rows(tmp_path / "out"))) == wanted
    assert multiset(reported(tmp_path / "out")) == wanted


def reported(folder: Path) -> pa.Table:
    """Return the answers that a report reads."""
    found = snapshot.answers(folder)
    assert found is not None
    return found


def test_a_report_reads_stays_beside_answers_of_windows(tmp_path: Path):
    w, rows = Windows(4, 1), table([0, 2])
    _, stays = pieces(rows, w, [])
    by_window = WindowQuery(SKYLINE, w, "UTC").stamp(50, rows)
    pa.parquet.write_table(by_window, tmp_path / "part-0.parquet")
    pa.parquet.write_table(stays, tmp_path / "part-1.parquet")
    assert multiset(reported(tmp_path)) == multiset(expanded(stays)) + multiset(by_window)


def test_a_report_has_the_columns_of_the_newest_stays(tmp_path: Path):
    _, stays = pieces(table([0, 2]), Windows(4, 1), [])
    newer = stays.rename_columns({"label": "name"})
    for at, some in enumerate((stays, newer)):
        pa.parquet.write_table(some, tmp_path / f"part-{at}.parquet")
    found = reported(tmp_path)
    assert found.column_names == expanded(newer).column_names
    assert found.num_rows == 2 * expanded(stays).num_rows


def test_the_live_table_shows_the_last_window_of_a_batch_of_stays(tmp_path: Path):
    w, rows = Windows(4, 1), table([0, 2])
    for at, some in enumerate(pieces(rows, w, [2])):
        pa.parquet.write_table(some, tmp_path / f"part-000000000003-{at:05d}.parquet")
    shown = snapshot.latest_front(tmp_path, batch(batch_id=3, latest_window={"start": 2, "end": 6, "rows": 1}))
    assert shown is not None
    assert multiset(shown) == multiset(WindowQuery(SKYLINE, w, "UTC").stamp(2, rows.slice(1)))


SCHEMA = Plan(SKYLINE, Windows(4, 1), "time", answers="stays").output_schema(table([]).schema)


def assert_refuses_stays(sink: sp.Sink, why: str) -> None:
    with pytest.raises(ConfigError, match=f'^output: answers="stays" needs {why}'):
        Sinks.of(sink).check({"output": SCHEMA})
    with pytest.raises(ConfigError, match=f'^output of best: answers="stays" needs {why}'):
        SharedSinks({"best": sink}).check({"output of best": SCHEMA})


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_stays_in_files_of_text_are_refused(kind: Format, tmp_path: Path):
    assert_refuses_stays(sp.Directory(str(tmp_path / "out"), kind), f"a folder of parquet files.*got format '{kind}'")


def test_stays_in_a_table_are_refused_before_the_table_looks_at_the_columns(tmp_path: Path):
    table_of = sp.Jdbc(f"sqlite:{tmp_path / 'a.db'}", "best", key="window_start, label")
    assert_refuses_stays(table_of, "a folder .* or a function.* got a sink of Jdbc$")


def test_a_sink_of_a_users_own_takes_no_stays():
    class Mine(sp.Sink):
        def write(self, session: AnySession, answers: BatchRows, batch_id: int) -> None:
            raise NotImplementedError

    assert_refuses_stays(Mine(), ".* got a sink of Mine$")


def test_folders_functions_and_memory_take_stays(tmp_path: Path):
    for output in (tmp_path / "out", sp.Memory(), sp.Console(), print):
        Sinks.of(output).check({"output": SCHEMA})


def test_rows_that_were_read_from_a_folder_of_stays_may_be_rejected_or_on_a_front(tmp_path: Path):
    """Only answers are stays: other rows of a query over such a folder have these columns, too."""
    late = sp.Directory(str(tmp_path / "late"), "json")
    front = sp.Directory(str(tmp_path / "front"), "csv")
    schemas = {"output": table([]).schema, "late": SCHEMA.append(pa.field("reason", pa.string())), "front": SCHEMA}
    Sinks.of(tmp_path / "out", late, front).check(schemas)
    SharedSinks({"best": sp.Memory()}, late).check({"output of best": table([]).schema, "late": schemas["late"]})
