"""`skypane readmit` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.streams import put

import skypane as sp
from skypane.cli.main import main

JOB = """
name: offers
source: {{format: json, path: {folder}/in, schema: "ts timestamp, city string, price double, rating double"}}
query: {{kind: aggregate, by: city, required: price, functions: {{n: count(), low: min(price)}}}}
window: {{time: ts, length: 10 minutes}}
progress: {{policy: watermark, delay: 0 seconds}}
output: {{path: {folder}/out}}
late: {{path: {folder}/late}}
amend: {{within: 1 day}}
checkpoint: {folder}/checkpoint
trigger: available now
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    rows = [
        {"ts": f"2026-01-01T08:{minute:02}:00Z", "city": "A", "price": price, "rating": 1}
        for minute, price in ((1, 5.0), (2, None), (12, 7.0), (25, 3.0))
    ]
    put(tmp_path, rows)
    path = tmp_path / "job.yaml"
    path.write_text(JOB.format(folder=tmp_path))
    return path


def counts(spark: SparkSession, folder: Path) -> list[tuple[int, float]]:
    rows = sp.read_answers(spark, folder / "out").orderBy("window_start").collect()
    return [(row.n, row.low) for row in rows]


def test_rows_without_a_price_come_back_with_one(
    job: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(job)]) == 0
    assert counts(spark, tmp_path) == [(1, 5.0), (1, 7.0)]
    replay = ["readmit", str(job), "--reason", "null price"]
    assert main([*replay, "--set", "prise=1.0"]) == 1
    assert "--set: unknown column 'prise', did you mean 'price'?" in capsys.readouterr().err
    assert main([*replay, "--set", "price=coalesce(price, missing)"]) == 1
    assert "repair fails: " in capsys.readouterr().err
    assert main([*replay, "--set", "price=coalesce(price, 4)"]) == 0
    assert "1 row, 1 window amended" in capsys.readouterr().out
    assert counts(spark, tmp_path) == [(2, 4.0), (1, 7.0)]
    assert main([*replay, "--set", "price=coalesce(price, 4)"]) == 1
    assert "no rows to readmit" in capsys.readouterr().err


def test_a_column_without_an_expression_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["readmit", "job.yaml", "--reason", "late", "--set", "price"])
    assert "need COLUMN=SQL, got 'price'" in capsys.readouterr().err
