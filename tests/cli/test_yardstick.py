from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skypane.cli.main import main

MADE = ["yardstick", "poisson", "--with", "rate=100", "--with", "delay=exponential", "--with", "delay_mean=1s"]


def test_a_workload_is_held_against_the_best_fixed_delay(capsys: pytest.CaptureFixture[str]):
    assert main([*MADE, "--rows", "40000", "--window", "10 seconds", "--max-drop", "0.02"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    for part in (
        "AqKSlack(0.02)",
        "best fixed delay",
        "KSlack()",
        "Against the best fixed delay: mean",
        "the credit is",
    ):
        assert part in output
    assert "No verdict" not in output


def test_a_file_is_held_against_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    times = pa.array([second * 1_000_000 for second in range(300)], pa.timestamp("us"))
    pq.write_table(pa.table({"at": times}), tmp_path / "stream.parquet")
    assert main(["yardstick", str(tmp_path / "stream.parquet"), "--time", "at", "--batch", "10"]) == 0
    assert "No verdict" in " ".join(capsys.readouterr().out.split())
    assert main(["yardstick", str(tmp_path / "stream.parquet")]) == 1
    assert "name the column of the event time with --time COLUMN" in capsys.readouterr().err


def test_an_unknown_workload_is_reported_by_name(capsys: pytest.CaptureFixture[str]):
    assert main(["yardstick", "poison"]) == 1
    assert "poison" in capsys.readouterr().err
