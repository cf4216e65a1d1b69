"""skypane and WindFlow give the same skylines, those of a definition, and another one is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from measure.bench.peers_skylines import (
    BEGIN,
    LATE,
    LENGTH,
    OTHERS,
    SLIDE,
    Case,
    Check,
    answers,
    by_windflow,
    measured,
    streamed,
    write,
)  # fmt: skip
from pyspark.sql import SparkSession

CASE = Case(30_000, 3, (20_000, 10_000))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("skylines")
    write(CASE, found)
    return found


def naive(table: pa.Table) -> list[tuple[float, ...]]:
    """Window, group and criteria of each row that no row of its window and group dominates."""
    times, groups = table["at"].cast(pa.int64()).to_numpy(), table["g"].to_numpy()
    points = np.column_stack([table[name].to_numpy() for name in CASE.names])
    found = []
    for start in range(int(times.min()) // SLIDE * SLIDE - LENGTH + SLIDE, int(times.max()) + 1, SLIDE):
        for group in np.unique(groups):
            mine = points[(groups == group) & (times >= start) & (times < start + LENGTH)]
            dominated = ((mine[:, None] >= mine[None]).all(2) & (mine[:, None] > mine[None]).any(2)).any(1)
            found += [(start, group, *row) for row in mine[~dominated].tolist()]
    return sorted(found)


def rows_of(table: pa.Table) -> list[tuple[float, ...]]:
    return sorted(zip(*(table[name].to_pylist() for name in ("w", "g", *CASE.names)), strict=True))


def test_rows_arrive_late_and_are_the_same_in_all_files(folder: Path):
    table = CASE.table()
    times = table["at"].cast(pa.int64()).to_numpy()
    assert 0 < (np.maximum.accumulate(times) - times).max() < LATE
    for size in CASE.batches:
        files = sorted((folder / str(size)).glob("*.parquet"))
        assert pa.concat_tables([pq.read_table(file) for file in files]).equals(table)
    records = np.fromfile(folder / "rows.bin", np.int64).reshape(-1, 2 + CASE.criteria)
    assert np.array_equal(records[:, 0] + BEGIN - LENGTH + SLIDE, times)
    assert np.array_equal(records[:, 2:].view(np.float64)[:, 1], table["c1"].to_numpy())


@pytest.mark.usefixtures("windflow_headers")
def test_windflow_answers_as_defined(folder: Path, tmp_path: Path):
    by_windflow(CASE, folder / "rows.bin", tmp_path / "answers")
    assert rows_of(answers(OTHERS, CASE, tmp_path / "answers")) == naive(CASE.table())


def test_skypane_answers_as_defined(folder: Path, tmp_path: Path, spark: SparkSession):
    streamed(spark, CASE, folder / "10000", tmp_path / "answers")
    assert rows_of(answers("skypane", CASE, tmp_path / "answers")) == naive(CASE.table())


def test_another_answer_is_seen(tmp_path: Path):
    table = pa.table(
        {
            "window_start": pa.array([0, 0], pa.timestamp("us")),
            "g": [1, 2],
            **{name: [0.5, 0.25] for name in CASE.names},
        }
    )
    for name, found in {
        "one": table,
        "other": table.set_column(3, "c1", pa.array([0.5, 0.75])),
        "fewer": table.slice(1),
    }.items():
        (tmp_path / name).mkdir()
        pq.write_table(found, tmp_path / name / "answers.parquet")
    check = Check(CASE)
    check("one", tmp_path / "one")
    check("the same", tmp_path / "one")
    with pytest.raises(AssertionError, match="other: other values of c1"):
        check("other", tmp_path / "other")
    with pytest.raises(AssertionError, match="fewer: 1 rows instead of 2"):
        check("fewer", tmp_path / "fewer")


@pytest.mark.long
def test_all_ways_are_measured_and_agree(spark: SparkSession):
    found = measured(spark, CASE, rounds=1)
    assert [side for side in found.sides if side != OTHERS] == [
        "skypane, 20,000 rows a batch",
        "skypane, 10,000 rows a batch",
    ]
    assert OTHERS in found.sides.keys() | found.missing.keys()
    assert found.ours == "skypane, 20,000 rows a batch"
