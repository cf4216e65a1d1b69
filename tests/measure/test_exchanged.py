"""The measure of the chosen exchange: its model by hand, and its streams at small size."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from measure import exchanged
from measure.bursty import CHOSEN, WAYS, run
from measure.exchanged import PANE, SECOND, Stream, by_stream, decided, model
from measure.tables import lines_of, markdown_table
from pyspark.sql import DataFrame, SparkSession

import skypane as sp
from skypane.control.exchange import AS_READ


def test_the_model_leaves_rows_where_an_even_source_keeps_all_workers_busy():
    """Eight partitions on four workers: nothing is idle, however dear a row is."""
    decisions = decided(Stream(8, 5, 8, 1_000_000, 4), 4, 10e-6)
    assert decisions.splitting.value == AS_READ


def test_the_model_splits_a_pane_that_one_worker_would_have():
    decisions = decided(Stream(1, 1, 8, 1_000_000, 4), 16, 3e-6)
    assert decisions.splitting.value == "TB_RR"
    figures = decisions.exchange.figures
    assert figures["TB_RR"] == pytest.approx(3.0 / 16 + 0.41 + 0.06, abs=0.02)
    assert figures[AS_READ] == pytest.approx(3.0, abs=0.05)


def test_the_map_has_a_line_for_each_source():
    assert len(model().splitlines()) == 2 + 2 * 2 * 3 * 2


def test_a_table_keeps_the_lines_of_streams_that_are_not_measured_again():
    known = [["1", "uniform", "12", "old"], ["8", "one-hot", "2", "old"]]
    assert lines_of(markdown_table(["source partitions", "panes", "d", "what"], known)) == known
    found = [["1", "one-hot", "4", "new"], ["1", "uniform", "12", "new"], ["1", "uniform", "4", "new"]]
    assert by_stream(known, found) == [found[2], found[1], found[0], known[1]]


@pytest.mark.parametrize(("panes", "span"), [(1, PANE), (5, SECOND)])
def test_streams_have_the_panes_of_their_shape(panes: int, span: int, tmp_path: Path):
    stream = Stream(2, panes, 3, 1_000, 3)
    stream.write(tmp_path / "in")
    files = sorted((tmp_path / "in").iterdir())
    assert len(files) == 6
    tables = [pq.read_table(file) for file in files]
    assert sum(table.num_rows for table in tables) == 3_000
    times = [time for table in tables for time in table["time"].cast("int64").to_pylist()]
    assert {time % SECOND // PANE for time in times} == set(range(span // PANE))


@pytest.mark.slow
def test_each_way_is_taken_and_compared(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    """At small size nothing pays: what is chosen is to leave rows where they are read."""
    taken: dict[str, set[bool]] = {}

    def noted(rows: DataFrame, way: str, scratch: Path, workers: int, criteria: list[str]) -> list[sp.BatchMetrics]:
        told = run(rows, way, scratch, workers, criteria)
        taken[way] = {batch.exchange for batch in told}
        return told

    monkeypatch.setattr(exchanged, "run", noted)
    line = exchanged.measured(spark, Stream(2, 1, 2, 200, 6), 1, 1)
    assert taken == {way: {way not in {AS_READ, CHOSEN}} for way in WAYS}
    assert line[-3] == AS_READ
    assert all(float(cell) > 0 for cell in (*line[:6], *line[-2:]))
