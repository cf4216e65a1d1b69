"""`skypane run` of a job of several queries: real streams, stopped and started again."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.streams import put, rows_in

from skypane.cli.main import main

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
JOB = """
name: offers
source: {{format: json, path: {folder}/in, schema: "ts timestamp, city string, price double", max_files_per_trigger: 1}}
window: {{time: ts, length: 10 minutes}}
queries:
  best:
    query: {{kind: skyline, preference: "price MIN", by: city}}
  load:
    query: {{kind: aggregate, by: city, functions: {{n: count(), total: sum(price)}}}}
    window: {{length: 30 minutes}}
progress: {{policy: watermark, delay: 0 seconds}}
output: {{path: {folder}/out}}
late: {{path: {folder}/late}}
checkpoint: {folder}/checkpoint
trigger: available now
"""

Row = tuple[int, str, float]
"""Minute, city and price of an offer."""


def offers(part: int) -> list[Row]:
    """Return the offers of half an hour, one a minute."""
    minutes = range(30 * part, 30 * part + 30)
    return [(minute, "AB"[minute % 2], float(minute * 37 % 100)) for minute in minutes]


def write(folder: Path, part: int, rows: list[Row]) -> None:
    values = [
        {"ts": (START + timedelta(minutes=minute)).isoformat(), "city": city, "price": price}
        for minute, city, price in rows
    ]
    put(folder, values, first=part)


def best(rows: list[Row]) -> Counter[Any]:
    """The cheapest offers of each ten minutes and city, by their definition."""
    found: Counter[Any] = Counter()
    for minute, city, price in rows:
        same = [p for m, c, p in rows if (m // 10, c) == (minute // 10, city)]
        found[minute // 10 * 10, city, price] += price == min(same)
    return +found


def load(rows: list[Row]) -> Counter[Any]:
    """Number and sum of the offers of each city in each half an hour, by their definition."""
    found: Counter[Any] = Counter()
    for begin in range(0, max(minute for minute, _, _ in rows) + 1, 30):
        for city in "AB":
            inside = [price for minute, c, price in rows if begin <= minute < begin + 30 and c == city]
            found[begin, city, len(inside), sum(inside)] += bool(inside)
    return +found


def read(folder: Path, *columns: str) -> Counter[Any]:
    """Return the rows of an output, their windows as minutes."""
    return Counter(
        ((row["window_start"] - START) // timedelta(minutes=1), *(row[column] for column in columns))
        for row in rows_in(folder)
    )


@pytest.fixture
def job(tmp_path: Path) -> Path:
    write(tmp_path, 0, offers(0))
    write(tmp_path, 1, offers(1))
    path = tmp_path / "job.yaml"
    path.write_text(JOB.format(folder=tmp_path))
    return path


@pytest.mark.usefixtures("spark")
def test_each_query_answers_its_windows_across_a_restart(job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["run", str(job)]) == 0
    early = offers(0) + offers(1)
    assert read(tmp_path / "out" / "best", "city", "price") == Counter(
        {row: n for row, n in best(early).items() if row[0] < 50}
    )
    write(tmp_path, 2, [*offers(2), (3, "A", 1.0)])  # the last one is late for both
    write(tmp_path, 3, [*offers(3), (65, "A", 0.0)])  # late for `best` alone
    page = tmp_path / "page.html"
    assert main(["run", str(job), "--drain", "--report", str(page)]) == 0
    output = capsys.readouterr().out
    whole = [row for part in range(4) for row in offers(part)]
    assert read(tmp_path / "out" / "best", "city", "price") == best(whole)
    assert read(tmp_path / "out" / "load", "city", "n", "total") == load([*whole, (65, "A", 0.0)])
    assert {(row["price"], row["queries"], row["reason"]) for row in rows_in(tmp_path / "late")} == {
        (1.0, "best, load", "late"),
        (0.0, "best", "late"),
    }
    for line in (
        "best: ",
        "load: 4 windows answered with 8 rows",
        f"answers   {tmp_path}/out/best   parquet",
        f"answers   {tmp_path}/out/load",
    ):
        assert line in output
    assert "load: Size of the answer over time" in page.read_text()
    assert "rows since the first driver start (best)" in page.read_text()


@pytest.mark.usefixtures("spark")
def test_a_dry_run_describes_each_query_and_writes_nothing(job: Path, capsys: pytest.CaptureFixture[str]):
    there = sorted(job.parent.rglob("*"))
    assert main(["run", str(job), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "query of best   skyline of price MIN, one per city" in lines
    assert "window of load  30 min of ts, every 30 min: 1 pane of 30 min" in lines
    assert lines[-1] == "the job is valid; nothing was read or written"
    assert sorted(job.parent.rglob("*")) == there


@pytest.mark.usefixtures("spark")
def test_a_column_that_a_query_lacks_is_an_error_that_names_the_query(job: Path, capsys: pytest.CaptureFixture[str]):
    job.write_text(job.read_text().replace("sum(price)", "sum(prise)"))
    assert main(["run", str(job), "--dry-run"]) == 1
    assert "query 'load': " in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_rejected_rows_of_several_queries_are_not_readmitted(job: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["run", str(job)]) == 0
    assert main(["readmit", str(job), "--reason", "late"]) == 1
    assert "rows can be readmitted to one query over windows" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_a_job_that_would_read_other_rows_is_refused_and_a_changed_policy_is_not(
    job: Path, capsys: pytest.CaptureFixture[str]
):
    text = job.read_text()
    assert main(["run", str(job)]) == 0
    job.write_text(text + 'where: "price > 1"\n')
    assert main(["run", str(job)]) == 1
    assert "where was None, is 'price > 1': the checkpoint has rows and offsets" in capsys.readouterr().err
    job.write_text(text.replace("delay: 0 seconds", "delay: 1 minute"))
    assert main(["run", str(job)]) == 0


MORE = """
  more:
    query: {kind: top_k, k: 1, score: price}
"""


@pytest.mark.usefixtures("spark")
def test_a_dry_run_shows_changes_by_query_and_a_run_makes_them(
    job: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["run", str(job)]) == 0
    text = job.read_text()
    write(tmp_path, 2, offers(2))
    capsys.readouterr()
    job.write_text(text.replace('\n  best:\n    query: {kind: skyline, preference: "price MIN", by: city}', ""))
    assert main(["run", str(job), "--dry-run"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (
        "refused     query 'best': is removed, and 1 window from 2026-01-01 08:50 to 2026-01-01 09:00, which hold rows read "
        "so far, would not be answered: answer them first by a drain with this query, drain() or `skypane run JOB --drain`"
    ) in lines
    job.write_text(text.replace(", total: sum(price)", "").replace("\nprogress:", f"{MORE}progress:"))
    assert main(["run", str(job), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "kept        query 'load': 'total' is removed" in lines
    assert (
        "begins      query 'more': is added, with the window 2026-01-01 09:00 to 2026-01-01 09:10 as its first; rows before "
        "it are late"
    ) in lines
    assert main(["run", str(job), "--drain"]) == 0
    whole = [row for part in range(3) for row in offers(part)]
    assert read(tmp_path / "out" / "best", "city", "price") == best(whole)
    assert read(tmp_path / "out" / "load", "city", "n") == Counter((*row[:3],) for row in load(whole))
    most = {minute // 10 * 10: (price, city) for price, minute, city in sorted((p, m, c) for m, c, p in offers(2))}
    assert read(tmp_path / "out" / "more", "city", "price") == Counter(
        (begin, city, price) for begin, (price, city) in most.items()
    )
