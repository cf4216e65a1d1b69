"""The current answers among all versions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.parameters import slow_but

import skypane as sp
from skypane.reporting import snapshot

START = datetime(2026, 1, 1, tzinfo=UTC)
BOUNDS = [(name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end")]
SCHEMA = pa.schema([*BOUNDS, ("version", pa.int32()), ("empty", pa.bool_()), ("x", pa.int64())])
Rows = list[tuple[int, int | None, bool | None, int]]
"""Window, version, whether it is empty, and a value."""
ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(0, 2)), max_size=12)


def answers(rows: Rows) -> pa.Table:
    bounds = [[START + timedelta(hours=window + more) for window, *_ in rows] for more in (0, 1)]
    others = [[row[at] for row in rows] for at in (1, 2, 3)]
    return pa.table([*bounds, *others], schema=SCHEMA)


def current(rows: Rows) -> list[tuple[int, int]]:
    """Return window and value of the rows of the last versions."""
    newest = {window: max(version or 0 for other, version, *_ in rows if other == window) for window, *_ in rows}
    return sorted((w, value) for w, version, empty, value in rows if (version or 0) == newest[w] and not empty)


@pytest.mark.slow
@settings(max_examples=10)
@given(ROWS)
def test_the_rows_of_the_last_version_of_each_window(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int, bool, int]]
):
    """A row of before the query amended has no version. The report takes the same rows."""
    all_rows: Rows = [*rows, (4, 0, False, 7), (5, None, None, 8)]
    table = answers(all_rows)
    found = sp.current_answers(spark.createDataFrame(table)).toArrow()
    hours = [int((hour - START) / timedelta(hours=1)) for hour in found["window_start"].to_pylist()]
    assert sorted(zip(hours, found["x"].to_pylist(), strict=True)) == current(all_rows)
    folder = tmp_path_factory.mktemp("out")
    pa.parquet.write_table(table, folder / "part-0.parquet")
    reported = snapshot.answers(folder)
    assert reported is not None
    assert sorted(reported["x"].to_pylist()) == sorted(value for _, value in current(all_rows))
    assert not {"version", "empty"} & set(reported.column_names)


def test_a_folder_without_versions_is_read_as_it_is(spark: SparkSession, tmp_path: Path):
    pa.parquet.write_table(answers([(0, 0, False, 1)]).select(["window_start", "x"]), tmp_path / "part.parquet")
    assert sp.read_answers(spark, tmp_path).columns == ["window_start", "x"]


@pytest.mark.parametrize("name", slow_but(["a{b,c}"], ["a[b]", "a[b", "a*b", "a?b", "a{b,c}", "a\\b"]))
def test_a_folder_whose_name_is_a_pattern_is_written_and_read(name: str, spark: SparkSession, tmp_path: Path):
    """By a batch query, a stream, and as the DataFrame of a function; each beside folders that the pattern stands for."""
    rows = spark.createDataFrame([(START + timedelta(minutes=10 * n), n) for n in range(12)], "at timestamp, x long")
    for folder in ("ab", "axb", "ac"):
        sp.ask(rows, "x MIN", time="at", window="1 hour", output=tmp_path / folder)
    wanted = [(0,), (6,)]
    at_once = sp.ask(rows, "x MIN", time="at", window="1 hour", output=tmp_path / name)
    assert sorted(at_once.select("x").collect()) == wanted
    assert sorted(sp.read_answers(spark, tmp_path / name).select("x").collect()) == wanted

    rows.write.parquet(str(tmp_path / "in"))
    arriving = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "in"))
    place, given = tmp_path / "streams" / name, list[tuple[int]]()
    outputs: dict[str, Any] = {
        "folder": place / "out",
        "function": lambda frame, _batch: given.extend(tuple(row) for row in frame.select("x").collect()),
    }
    for kind, output in outputs.items():
        job = sp.stream(arriving, "x MIN", time="at", window="1 hour", output=output, checkpoint=place / kind)
        handle = job.start(trigger="available now")
        assert handle.await_termination(600), handle.status
        handle.drain()
    assert sorted(sp.read_answers(spark, place / "out").select("x").collect()) == wanted
    assert sorted(given) == wanted


def test_what_is_no_answer_of_windows_is_refused(spark: SparkSession):
    with pytest.raises(sp.ConfigError, match="no column 'window_start'"):
        sp.current_answers(spark.range(3))
