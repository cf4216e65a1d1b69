"""`skypane readmit` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.streams import put

import skypane as sp
from skypane.cli.main import main

REST = """\
window: {{time: ts, length: 10 minutes}}
progress: {{policy: watermark, delay: 0 seconds}}
output: {{path: {folder}/out}}
late: {{path: {folder}/late}}
amend: {{within: 1 day}}
checkpoint: {folder}/checkpoint
trigger: available now
"""

JOB = (
    """
name: offers
source: {{format: json, path: {folder}/in, schema: "ts timestamp, city string, price double, rating double"}}
query: {{kind: aggregate, by: city, required: price, functions: {{n: count(), low: min(price)}}}}
"""
    + REST
)


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


LINES = (
    """
name: sales
source: {{{source}, schema: "at timestamp, shop string, price double"}}
derive: {{ts: at, cents: price * 100}}
select: [ts, shop, cents]
query: {{kind: aggregate, by: shop, functions: {{n: count(), all: sum(cents)}}}}
"""
    + REST
)
SALES = [
    '{"at": "2026-01-01T08:01:00Z", "shop": "A", "price": 1.5}',
    '{"at": "2026-01-01T08:02:00Z", "shop": "A", "price": 2.5}',
    '{"at": "2026-01-01T08:25:00Z", "shop": "B", "price": 3.5}',
]


def sold(spark: SparkSession, folder: Path) -> list[tuple[object, ...]]:
    answers = sp.read_answers(spark, folder / "out").orderBy("window_start", "shop")
    return [(row.window_start, row.shop, row.n, row["all"]) for row in answers.collect()]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("format: skypane-many, inputs: {{given: ['{folder}/in/*.json']}}", (58, 2)),
        ("format: json, path: {folder}/in", (None, None)),
    ],
    ids=["inputs", "Spark's own"],
)
def test_a_line_that_does_not_parse_comes_back_from_its_raw_text(
    source: str, place: tuple[object, ...], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Once it is repaired, the answers are those of the stream in which it had been right."""
    monkeypatch.chdir(tmp_path)
    jobs = {}
    for name, lines in {
        "right": SALES,
        "wrong": [SALES[0], SALES[1].replace("2.5", "2,5"), "no sale", SALES[2]],
    }.items():
        folder = tmp_path / name
        (folder / "in").mkdir(parents=True)
        (folder / "in" / "a.json").write_text("".join(f"{line}\n" for line in lines))
        jobs[name] = folder / "job.yaml"
        jobs[name].write_text(LINES.format(source=source.format(folder=folder), folder=folder))
        assert main(["run", str(jobs[name])]) == 0
    rows = spark.read.parquet(str(tmp_path / "wrong" / "late")).orderBy("raw_text").collect()
    assert [row.raw_text for row in rows] == ["no sale", SALES[1].replace("2.5", "2,5")]
    assert {row.reason for row in rows} == {"null ts"}
    assert all(row.raw_file.endswith("wrong/in/a.json") for row in rows)
    assert (rows[1].raw_offset, rows[1].raw_line) == place
    assert sold(spark, tmp_path / "wrong") != sold(spark, tmp_path / "right")
    again = ["readmit", str(jobs["wrong"]), "--reason", "null ts", "--reparse"]
    assert main([*again, "--set", "raw_text=replace(raw_text, '2,5', '2.5')"]) == 0
    assert sold(spark, tmp_path / "wrong") == sold(spark, tmp_path / "right")
    # What still does not parse was rejected again, with its text, and may come back later.
    mended = SALES[1].replace("08:02", "08:03")
    assert main([*again, "--set", f"raw_text='{mended}'"]) == 0
    assert [row[2] for row in sold(spark, tmp_path / "wrong")] == [3]
