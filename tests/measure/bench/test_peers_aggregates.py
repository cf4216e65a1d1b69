"""The ways to answer aggregates of windows give the same answers, those of a definition, and a wrong one is seen."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measure.bench.peers_aggregates import (
    BEGIN,
    CLOSING,
    LENGTH,
    MINUTE,
    SUBJECTS,
    Case,
    Check,
    Inputs,
    answers,
    by_duckdb,
    by_polars,
    by_windflow,
    measured,
)  # fmt: skip
from pyspark.sql import SparkSession

CASE = Case(3_000, 40)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    found = Inputs(tmp_path_factory.mktemp("aggregates") / "inputs")
    found.write(CASE.table())
    return found


@pytest.fixture(scope="module")
def check(inputs: Inputs) -> Check:
    return Check(inputs)


def naive(table: pa.Table) -> dict[tuple[int, int], tuple[int, float, float]]:
    """Each window and key with count, mean and maximum: every window is looked at for every row."""
    held: dict[tuple[int, int], list[float]] = {}
    for at, key, x in zip(
        table["at"].cast(pa.int64()).to_pylist(), table["key"].to_pylist(), table["x"].to_pylist(), strict=True
    ):
        for start in range(at // MINUTE * MINUTE - LENGTH + MINUTE, at + 1, MINUTE):
            assert start <= at < start + LENGTH
            held.setdefault((start, key), []).append(x)
    return {window: (len(found), math.fsum(found) / len(found), max(found)) for window, found in held.items()}


def test_rows_arrive_up_to_a_minute_late():
    times = CASE.table()["at"].cast(pa.int64()).to_numpy()
    behind = np.maximum.accumulate(times) - times
    assert 0 < behind.max() < MINUTE
    assert (times.min() - BEGIN, times.max() - BEGIN) == (
        pytest.approx(0, abs=MINUTE),
        pytest.approx(2 * LENGTH, abs=MINUTE),
    )


def test_the_files_have_all_rows_in_their_order(inputs: Inputs):
    whole = pa.concat_tables([pq.read_table(file) for file in sorted(inputs.rows.glob("*.parquet"))])
    assert whole.equals(CASE.table())
    closed = pa.concat_tables([pq.read_table(file) for file in sorted(inputs.closed.glob("*.parquet"))])
    assert closed.slice(0, CASE.rows).equals(whole)
    assert closed["key"].to_pylist()[CASE.rows :] == [CLOSING]
    times = [file.stat().st_mtime for file in sorted(inputs.closed.glob("*.parquet"))]
    assert times == sorted(set(times))


def test_the_definition_in_sql_is_the_definition(check: Check):
    right = naive(CASE.table())
    rows = check.definition.to_pylist()
    assert len(rows) == len(right) == check.count
    for row in rows:
        n, mean, most = right[row["w"], row["key"]]
        assert (row["n"], row["most"]) == (n, most)
        assert row["mean"] == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("way", [by_duckdb, by_polars])
def test_a_way_answers_as_defined(way, inputs: Inputs, check: Check, tmp_path: Path):
    way(inputs, tmp_path / "answers")
    check(way.__name__, tmp_path / "answers")


@pytest.mark.usefixtures("windflow_headers")
def test_windflow_answers_as_defined(inputs: Inputs, check: Check, tmp_path: Path):
    times = by_windflow(inputs, tmp_path / "answers")
    assert times.wall > 0
    assert times.cpu is not None
    check("WindFlow", tmp_path / "answers")


def with_last(table: pa.Table, name: str, value: float) -> pa.Table:
    """Return a table with another value in its last row."""
    changed = pa.array(np.append(table[name].to_numpy()[:-1], value))
    return table.set_column(table.column_names.index(name), name, changed)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda table: table.slice(1), r"\(0, 1, 0\)"),
        (lambda table: pa.concat_tables([table, table.slice(0, 1)]), "some of them twice"),
        (lambda table: with_last(table, "mean", 1e9), r"\(0, 0, 1\)"),
        (lambda table: with_last(table, "n", 0), r"\(0, 0, 1\)"),
        (lambda table: with_last(table, "key", 99), r"\(1, 1, 0\)"),
    ],
    ids=["one missing", "one twice", "another mean", "another count", "another key"],
)
def test_one_wrong_answer_is_seen(change, problem, inputs: Inputs, check: Check, tmp_path: Path):
    by_duckdb(inputs, tmp_path / "right.parquet")
    pq.write_table(change(pq.read_table(tmp_path / "right.parquet")), tmp_path / "wrong.parquet")
    with pytest.raises(AssertionError, match=problem):
        check("somebody", tmp_path / "wrong.parquet")


def test_answers_of_the_closing_row_do_not_count(inputs: Inputs, check: Check, tmp_path: Path):
    by_duckdb(inputs, tmp_path / "right.parquet")
    right = pq.read_table(tmp_path / "right.parquet")
    more = right.slice(0, 1).set_column(1, "key", pa.array([CLOSING]))
    pq.write_table(pa.concat_tables([right, more]), tmp_path / "more.parquet")
    check("somebody", tmp_path / "more.parquet")
    assert answers("somebody", tmp_path / "more.parquet").num_rows == check.count + 1


@pytest.mark.long
@pytest.mark.parametrize("kind", SUBJECTS)
def test_all_ways_are_measured_and_agree(kind: str, spark: SparkSession):
    found = measured(spark, CASE, kind, rounds=1)
    assert found.subject == SUBJECTS[kind]
    assert found.ours == "skypane"
    assert {"Spark, window()"} < found.sides.keys()
    assert found.sides.keys() | found.missing.keys() >= ({"DuckDB", "polars"} if kind == "table" else {"WindFlow"})
    assert all(len(rounds) == 1 and rounds[0].cpu is not None for rounds in found.sides.values())
