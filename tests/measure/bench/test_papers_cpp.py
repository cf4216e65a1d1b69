"""The C++ of paper 1 gets the rows of the files that the engine reads, in their order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measure.bench.papers_cpp import ENGINE, PROGRAM, STAGE, compare, line, rows_of
from measure.bench.streaming import PANE_MICROS, WARM_UP, Case, Progress
from measure.peers.places import VARIABLE
from measure.results.record import Comparison, Times
from pyspark.sql import SparkSession

ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
CASE = Case(5_000, 4, WARM_UP + 1)


def test_rows_are_those_of_the_files_with_times_from_zero(tmp_path: Path):
    CASE.write(tmp_path / "stream")
    rows = rows_of(CASE, tmp_path / "stream")
    table = pa.concat_tables([pq.read_table(file) for file in sorted((tmp_path / "stream").glob("*.parquet"))])
    assert rows.shape == (CASE.rows * CASE.batches, CASE.criteria + 2)
    assert rows[:, :4].tolist() == list(
        map(list, zip(*(table[name].to_pylist() for name in CASE.columns()), strict=True))
    )
    assert rows[:, 4].tolist() == [time + PANE_MICROS for time in table["time"].cast(pa.int64()).to_pylist()]
    assert rows[:, 4].min() >= 0
    assert not rows[:, 5].any()


def test_a_line_has_the_ratio_and_the_share_of_late_rows():
    sides = {ENGINE: [Times(0.5)], STAGE: [Times(1.0)], PROGRAM: [Times(2.0, 3.0)]}
    found = Comparison("skylines of a stream", "4 criteria", 30_000, ENGINE, sides)
    assert line(CASE, found, [300, 0, 600]) == ["5,000", "4", "60,000", "30,000", "15,000", "4.00", "1.00%"]


@pytest.mark.long
def test_without_the_program_the_others_are_compared(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    listener, rows = Progress(), spark.conf.get(ROWS)
    spark.streams.addListener(listener)
    try:
        found, dropped = compare(spark, listener, CASE, 1)
    finally:
        spark.streams.removeListener(listener)
        spark.conf.set(ROWS, str(rows))
    assert found.sides.keys() == {ENGINE, STAGE}
    assert all(len(rounds) == 1 and rounds[0].cpu for rounds in found.sides.values())
    assert found.missing.keys() == {PROGRAM}
    assert dropped == []
    assert np.isfinite([found.rate(side) for side in found.sides]).all()
