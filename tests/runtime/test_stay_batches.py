"""A batch of stays that comes again after a kill, and the sinks that take stays."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import SKYLINE, multiset, table, tables, windows
from tests.runtime.streams import parquet_rows

import skypane as sp
from skypane.operators.open_panes import OpenPanes
from skypane.operators.stay_columns import expanded
from skypane.operators.window_query import WindowQuery
from skypane.plan import Plan
from skypane.reporting import snapshot
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.repeated_batch import missing_rows
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.types import ConfigError
from skypane.windows import Windows

DRIVER = "driver-000001"


def pieces(rows: pa.Table, w: Windows, cuts: list[int]) -> list[pa.Table]:
    """Return the stays of all windows that hold a row, in runs that are cut at these places."""
    plan = Plan(SKYLINE, w, "time", answers="stays")
    by_pane = [
        (w.pane_at(time), rows.slice(at, 1)) for at, time in enumerate(rows["time"].cast(pa.int64()).to_pylist())
    ]
    tasks = OpenPanes[pa.Table].empty(w).add(by_pane).all_windows()
    query, found = plan.window_query(rows.schema), []
    for begin, end in pairwise(sorted({0, len(tasks), *(cut % (len(tasks) + 1) for cut in cuts)})):
        found += [some.rows for some in query.worker().stays(tasks[begin:end], lambda partial: partial)]
    return [plan.output_schema(rows.schema).empty_table(), *found]


@given(
    tables(), windows(), st.lists(st.integers(0, 99), max_size=3), st.lists(st.integers(0, 99), max_size=3), st.data()
)
def test_a_batch_that_is_cut_into_other_stays_adds_the_rows_that_are_missing(
    rows: pa.Table, w: Windows, first: list[int], second: list[int], data: st.DataObject
):
    published = pieces(rows, w, first)
    published = published[: data.draw(st.integers(1, len(published)))]
    whole = pa.concat_tables(pieces(rows, w, second))
    missing = missing_rows(whole, pa.concat_tables(published))
    assert missing is not None
    assert missing.schema.equals(whole.schema)
    together = pa.concat_tables([*published, missing])
    assert multiset(expanded(together)) == multiset(expanded(whole))


def test_a_batch_with_other_rows_is_another_batch():
    w = Windows(9, 1)
    other = pa.concat_tables(pieces(table([0, 4], [1.0, 1.0], [1.0, 1.0]), w, []))
    assert missing_rows(pa.concat_tables(pieces(table([0, 5]), w, [])), other) is None


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
        count = sum(part.num_rows for part in parts)
        sink.write(None, BatchRows(parts[0].schema, count, (), store=stage, files=names, driver=DRIVER), 0)  # type: ignore[arg-type]

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
    reported = snapshot.answers(tmp_path / "out")
    assert reported is not None
    assert multiset(reported) == wanted


def test_a_report_reads_stays_beside_answers_of_windows(tmp_path: Path):
    w, rows = Windows(4, 1), table([0, 2])
    _, stays = pieces(rows, w, [])
    by_window = WindowQuery(SKYLINE, w, "UTC").stamp(50, rows)
    pa.parquet.write_table(by_window, tmp_path / "part-0.parquet")
    pa.parquet.write_table(stays, tmp_path / "part-1.parquet")
    reported = snapshot.answers(tmp_path)
    assert reported is not None
    assert multiset(reported) == multiset(expanded(stays)) + multiset(by_window)


SCHEMA = Plan(SKYLINE, Windows(4, 1), "time", answers="stays").output_schema(table([]).schema)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_stays_in_files_of_text_are_refused(kind: str, tmp_path: Path):
    sinks = Sinks.of(sp.Directory(str(tmp_path / "out"), kind))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"answers=\"stays\" needs a folder of parquet files, got format '{kind}'"):
        sinks.check({"output": SCHEMA})


def test_stays_in_a_table_are_refused(tmp_path: Path):
    table_of = sp.Jdbc(f"sqlite:{tmp_path / 'a.db'}", "best")
    with pytest.raises(ConfigError, match='output: answers="stays" needs a folder of parquet files, or a function'):
        Sinks.of(table_of).check({"output": SCHEMA})
    with pytest.raises(ConfigError, match='output of best: answers="stays" needs'):
        SharedSinks({"best": table_of}).check({"output of best": SCHEMA})


def test_folders_functions_and_memory_take_stays(tmp_path: Path):
    for output in (tmp_path / "out", sp.Memory(), sp.Console(), print):
        Sinks.of(output).check({"output": SCHEMA})
