"""Jobs end to end on real Spark, on small data: files in stream and batch, the shipped examples, what goes wrong."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
import yaml

import skypane as sp
from skypane.jobs import building, examples, parse, running
from skypane.locations import Location
from skypane.plan import Plan
from skypane.reporting.live import PlainDisplay
from skypane.reporting.query_view import QueryView
from skypane.reporting.report import render
from skypane.reporting.runlog import RunLog
from skypane.reporting.snapshot import answers
from skypane.runtime import local
from skypane.types import ConfigError, SkypaneError
from skypane.workloads import workload

START = datetime(2024, 5, 1, tzinfo=UTC)


def offers(count=200):
    """Offers a minute apart, prices and ratings against each other, one null."""
    return [
        {
            "at": (START + timedelta(minutes=i)).strftime("%Y-%m-%d %H:%M:%S"),
            "city": "AB"[i % 2],
            "price": None if i == 7 else float((i * 37) % 100),
            "rating": float((i * 53) % 10),
        }
        for i in range(count)
    ]


def best(rows):
    """The skyline by its definition: low price, high rating."""

    def beats(a, b):
        return (
            a["price"] <= b["price"]
            and a["rating"] >= b["rating"]
            and (a["price"] < b["price"] or a["rating"] > b["rating"])
        )

    return [row for row in rows if not any(beats(other, row) for other in rows)]


def expected():
    """Hour and city -> prices of the best offers."""
    groups: dict[tuple[int, str], list[Any]] = {}
    for i, row in enumerate(offers()):
        if row["price"] is not None:
            groups.setdefault((i // 60, row["city"]), []).append(row)
    return {key: sorted(row["price"] for row in best(rows)) for key, rows in groups.items()}


def best_of_the_hour(until):
    """City and price of the offers of the hour before a minute that no other one of their city beats."""
    last = [row for i, row in enumerate(offers()) if until - 60 < i <= until and row["price"] is not None]
    return sorted((city, row["price"]) for city in "AB" for row in best([row for row in last if row["city"] == city]))


def written(folder):
    table = answers(folder)
    assert table is not None
    return table


def place(row):
    """Hour and city of an answer."""
    start = row["window_start"].replace(tzinfo=UTC)  # Spark's own parquet, of batches, has no zone
    return (start - START) // timedelta(hours=1), row["city"]


def found(table):
    groups: dict[tuple[int, str], list[Any]] = {}
    for row in table.to_pylist():
        groups.setdefault(place(row), []).append(row["price"])
    return {key: sorted(prices) for key, prices in groups.items()}


@pytest.fixture
def folder(tmp_path):
    """Four files of offers as JSON lines."""
    (tmp_path / "in").mkdir()
    rows = offers()
    for part in range(4):
        lines = [json.dumps(row) for row in rows[part * 50 : part * 50 + 50]]
        file = tmp_path / "in" / f"{part}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (part, part))  # Spark reads the oldest first
    return tmp_path


def source(folder, **more):
    schema = "at string, city string, price double, rating double"
    return {"format": "json", "path": str(folder / "in"), "schema": schema, **more}


def text_of(folder, **changed):
    job: dict[str, Any] = {
        "name": "offers",
        "source": source(folder, max_files_per_trigger=1),
        "derive": {"ts": "to_timestamp(at)"},
        "select": ["ts", "city", "price", "rating"],
        "query": {"kind": "skyline", "preference": "price MIN, rating MAX", "by": "city"},
        "window": {"time": "ts", "length": "1 hour"},
        "progress": {"policy": "watermark", "delay": "0 seconds"},
        "output": {"path": str(folder / "out")},
        "late": {"path": str(folder / "late")},
        "checkpoint": str(folder / "checkpoint"),
        "trigger": "available now",
    }
    parts = {name: value for name, value in (job | changed).items() if value is not None}
    return yaml.safe_dump(parts)


def job_of(folder, **changed):
    return parse(text_of(folder, **changed))


def batch_of(folder, **changed):
    streams_only = dict.fromkeys(("progress", "late", "checkpoint", "trigger"))
    return job_of(folder, **{"mode": "batch", "source": source(folder), "invalid": "drop"} | streams_only | changed)


def log_in(folder):
    log = RunLog(folder / "log")
    log.begin({})
    return log


def streamed(job, spark, log, **bounds):
    ready = building.build(job, spark)
    assert isinstance(ready, sp.Job)
    return running.run_stream(job, ready, PlainDisplay(QueryView(job.name), lambda _: None), log, **bounds)


def answered(job, spark):
    ready = building.build(job, spark)
    assert isinstance(ready, building.BatchJob)
    ready.write()


def test_late_rows_amend(spark, folder):
    """The report shows the last version of each window."""
    job, log = job_of(folder, amend={"within": "1 day"}), log_in(folder)
    assert streamed(job, spark, log)
    assert found(answers(folder / "out")) == {key: prices for key, prices in expected().items() if key[0] < 3}
    assert all(metrics.amended is not None for metrics in log.batches())
    assert job.summary()["amend"] == {"within": "1 day", "max_bytes": 1 << 30, "changes": False}
    assert "amend" not in job_of(folder).summary()
    assert render(running.snapshot(job, log))


def test_a_stream_of_files(spark, folder):
    job, log = job_of(folder), log_in(folder)
    assert streamed(job, spark, log)

    closed = {key: prices for key, prices in expected().items() if key[0] < 3}  # the newest is 3:19
    assert found(answers(folder / "out")) == closed
    assert written(folder / "late").column("reason").to_pylist() == ["null price"]
    assert [metrics.rows for metrics in log.batches()] == [50] * 4

    page = render(running.snapshot(job, log))
    assert "skyline of price MIN, rating MAX, one per city" in page
    assert "An example front" in page


def test_a_drained_stream_of_files_answers_every_window(spark, folder):
    assert streamed(job_of(folder), spark, log_in(folder), drain=True)
    assert found(answers(folder / "out")) == expected()


CONTINUOUS = {"kind": "continuous_skyline", "preference": "price MIN, rating MAX", "by": "city"}


def replayed(updates, until):
    """(city, price) of the rows that updates have added, and not deleted, up to an instant."""
    there: Counter[tuple[str, float]] = Counter()
    for row in updates.to_pylist():
        if row["action_time"] <= until:
            there[row["city"], row["price"]] += 1 if row["action"] == "ADD" else -1
    return sorted((+there).elements())


def test_a_continuous_skyline_emits_its_updates_and_keeps_its_front(spark, folder):
    job = job_of(folder, query=CONTINUOUS | {"every": "10 minutes"}, front={"path": str(folder / "front")})
    log = log_in(folder)
    assert streamed(job, spark, log)

    updates, front = written(folder / "out"), written(folder / "front")
    now = sorted(zip(front["city"].to_pylist(), front["price"].to_pylist(), strict=True))
    assert now == replayed(updates, START + timedelta(days=1))
    for minutes in (30, 75, 150):  # the definition: of the rows of the last hour, nothing beats these
        assert replayed(updates, START + timedelta(minutes=minutes)) == best_of_the_hour(minutes)

    snapshot = running.snapshot(job, log)
    sizes = snapshot.one_front
    assert sizes is not None
    assert sum(dict(zip(sizes.group, sizes.row_counts.tolist(), strict=True)).values()) == len(now)
    assert "Size of the front over time" in render(snapshot)


def test_a_batch_of_a_continuous_skyline_answers_with_its_history(spark, folder):
    answered(batch_of(folder, query=CONTINUOUS), spark)
    history = written(folder / "out")
    assert {"front_from", "front_to"} <= set(history.column_names)
    noon = (START + timedelta(minutes=75)).replace(tzinfo=None)
    then = [
        (row["city"], row["price"])
        for row in history.to_pylist()
        if row["front_from"].replace(tzinfo=None) <= noon < row["front_to"].replace(tzinfo=None)
    ]
    assert sorted(then) == best_of_the_hour(75)


def test_a_batch_answers_every_window_and_does_not_overwrite_by_default(spark, folder):
    answered(batch_of(folder), spark)
    assert found(answers(folder / "out")) == expected()
    written = sorted((folder / "out").iterdir())
    with pytest.raises(SkypaneError, match=r"output: .*/out has files already: .* if_exists='overwrite'"):
        answered(batch_of(folder), spark)
    assert sorted((folder / "out").iterdir()) == written
    answered(batch_of(folder, output={"path": str(folder / "out"), "if_exists": "overwrite"}), spark)
    assert found(answers(folder / "out")) == expected()


@pytest.mark.parametrize(
    ("path", "by_workers"),
    [("out", True), ("s3a://bucket/out", False), ("dbfs:/out", False), ("wasbs://box@account/out", False)],
)
def test_spark_writes_where_workers_cannot(path, by_workers):
    assert building._workers_reach(Location.of(path)) is by_workers


def test_a_batch_with_rows_that_cannot_be_ranked_fails_with_the_reason(spark, folder):
    with pytest.raises(
        SkypaneError,
        match=r"without the answers of this run: .*cannot rank rows whose price is null or NaN: .*invalid='drop'",
    ):
        answered(batch_of(folder, invalid="error"), spark)


def test_a_stream_of_parquet_takes_the_schema_of_its_files(spark, folder):
    times = [START + timedelta(minutes=i) for i in range(200)]
    table = pa.Table.from_pylist([row | {"ts": ts} for row, ts in zip(offers(), times, strict=True)])
    (folder / "parquet").mkdir()
    pa.parquet.write_table(table, folder / "parquet" / "0.parquet")
    job = job_of(folder, source={"format": "parquet", "path": str(folder / "parquet")}, derive={})
    assert building.frame(job, spark).schema["price"].dataType.simpleString() == "double"


def test_console_output(spark, folder, capsys):
    answered(batch_of(folder, output={"format": "console", "rows": 3}), spark)
    assert "window_start" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"derive": {"ts": "to_timestmp(at)"}}, r"derive.ts: .*`to_timestmp`"),
        ({"where": "prize > 3"}, r"where: .*`prize`"),
        ({"select": ["ts", "prize"]}, r"select: .*`prize`"),
        ({"source": {"format": "nosuchformat"}}, r"source: .*nosuchformat"),
        (
            {"query": {"kind": "skyline", "preference": "prize MIN"}},
            r"unknown column 'prize'; there are ts, city, price, rating",
        ),
        ({"window": {"time": "city", "length": "1 hour"}}, r"'city'.*timestamp"),
        ({"progress": {"policy": "kslack"}, "source_column": "cty"}, r"'cty'"),
    ],
)
def test_what_spark_or_the_query_cannot_do_names_the_section(spark, folder, changed, complaint):
    with pytest.raises(ConfigError, match=complaint):
        building.build(job_of(folder, **changed), spark)


def test_the_example_of_flights(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = examples.text("flights-top-delays").replace(
        "arr_delay IS NOT NULL", "arr_delay IS NOT NULL AND month = 1 AND day < 8"
    )
    answered(parse(text), spark)
    rows = pa.concat_tables(
        pa.csv.read_csv(file) for file in sorted((tmp_path / "flights-top-delays").glob("*.csv"))
    ).to_pylist()
    weeks: dict[tuple[Any, str], list[float]] = {}
    for row in rows:
        weeks.setdefault((row["window_start"], row["carrier"]), []).append(row["dep_delay"] + 0.5 * row["arr_delay"])
    assert len({week for week, _ in weeks}) == 2
    assert all(len(scores) <= 3 and scores == sorted(scores, reverse=True) for scores in weeks.values())
    assert max(max(scores) for scores in weeks.values()) == 853 + 0.5 * 851  # MQ 3944 on January 1


def shortened(text, rows):
    """The job over so many rows of its workload, in two batches."""
    text = re.sub(r'"rows": \d+', f'"rows": {rows}', text)
    return parse(re.sub(r"rowsPerTrigger: \d+", f"rowsPerTrigger: {rows // 2}", text))


def seen_by(job, spark):
    """The rows that its query sees, all at once."""
    return building.frame(job.model_copy(update={"mode": "batch"}), spark).toArrow()


def assert_as_the_oracle(found, one, time, delay, rows):
    """Check what a query has answered, drained after these rows with a watermark."""
    plan = Plan(one.build(), one.window.build(), time, sp.Watermark(delay))
    wanted = pa.concat_tables([answer.rows for answer in local.answers(plan, [rows, local.Drain()])])
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def test_the_example_of_cabs_answers_every_area_as_the_oracle_does_and_draws_it(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = examples.text("cab-areas").replace("slide: 1 minute", "slide: 20 minutes")
    text = text.replace("policy: aqkslack", "policy: watermark").replace("max_drop: 0.01", "delay: 1 hour")
    job, log = shortened(text, 60_000), log_in(tmp_path)
    assert streamed(job, spark, log, drain=True)
    found = written(tmp_path / "cab-areas" / "windows")
    assert_as_the_oracle(found, job.each_query[0], "time", "1 hour", seen_by(job, spark))
    assert any(found["queue_end"].to_pylist())

    page = render(running.snapshot(job, log))
    assert "The map" in page
    assert "Station" in page


def test_the_example_of_meters_quarantines_bad_readings_and_answers_the_rest(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job, log = shortened(examples.text("meter-load"), 60_000), log_in(tmp_path)
    assert streamed(job, spark, log, drain=True)
    rows = workload("meters", meters=243, rows=60_000).table()
    energy = rows["kwh"].to_numpy()
    bad = ~((energy >= 0) & (energy <= 0.4))
    aside = written(tmp_path / "meter-load" / "late")
    assert aside.num_rows == bad.sum() > 0
    assert set(aside["reason"].to_pylist()) == {"null energy"}

    found = written(tmp_path / "meter-load" / "windows")
    whole = found.filter(pc.equal(found["window_end"], pc.min(rows["time"]).as_py() + timedelta(hours=1)))
    hour = rows.filter(pa.array(~bad)).filter(pc.less(rows.filter(pa.array(~bad))["time"], whole["window_end"][0]))
    hour = hour.group_by(["street", "house"]).aggregate([("kwh", "count"), ("kwh", "sum")])
    wanted = {(row["street"], row["house"]): (row["kwh_count"], row["kwh_sum"]) for row in hour.to_pylist()}
    assert len(wanted) == whole.num_rows == 243
    for row in whole.to_pylist():
        count, total = wanted[row["street"], row["house"]]
        assert (row["readings"], row["energy_kwh"]) == (count, pytest.approx(total))


def test_the_example_of_several_queries_answers_each_as_the_oracle_does(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = examples.text("flights-board").replace("rowsPerTrigger: 10000", "rowsPerTrigger: 60000")
    text = text.replace("where: arr_delay IS NOT NULL", "where: arr_delay IS NOT NULL AND month = 1")
    text = text.replace("policy: aqkslack", "policy: watermark").replace("max_drop: 0.01", "delay: 2 days")
    job, log = parse(text), log_in(tmp_path)
    assert streamed(job, spark, log, drain=True)
    rows = seen_by(job, spark)
    assert rows.num_rows > 20_000
    for one in job.each_query:
        found = written(tmp_path / "flights-board" / "windows" / one.name)
        assert_as_the_oracle(found, one, "scheduled", "2 days", rows)
    page = render(running.snapshot(job, log))
    assert "best: An example front" in page
    assert "airlines: Size of the answer over time" in page


def test_the_example_without_data(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    job, log = examples.find("rate-skyline"), log_in(tmp_path)

    def until_answered(handle):
        handle.add_listener(lambda metrics: handle.stop() if metrics.windows else None)

    assert streamed(job, spark, log, started=until_answered, seconds=300)
    assert log.batches()[-1].windows
    assert set(written(tmp_path / "rate-skyline" / "windows").column("city").to_pylist()) <= {
        "Athens",
        "Bergen",
        "Cusco",
    }
    assert log.batches()[-1].drop_ratio <= 0.01


MINE = """
from dataclasses import dataclass

import numpy as np
import pyarrow as pa


def rises(rows: pa.Table) -> int:
    prices = rows["price"].to_pylist()
    return sum(after > before for before, after in zip(prices, prices[1:]))


@dataclass(frozen=True)
class Total:
    column: str

    @property
    def columns(self):
        return (self.column,)

    def state_type(self, schema):
        return pa.float64()

    def output_type(self, schema):
        return pa.float64()

    def lift(self, rows, groups, n):
        return pa.array(np.bincount(groups, rows[self.column].to_numpy(), n))

    def combine(self, states, groups, n):
        return pa.array(np.bincount(groups, states.to_numpy(), n))

    def lower(self, states):
        return states
"""


@pytest.mark.slow
def test_what_is_a_users_own_is_found_in_the_working_folder_by_sparks_workers_too(folder):
    """As a user runs it: the program itself, in a folder that is on nobody's path."""
    (folder / "my_module.py").write_text(MINE)
    query = {
        "kind": "aggregate",
        "by": "city",
        "time": "ts",
        "required": "price",
        "functions": {
            "rises": "in_order(my_module.rises, price, returns=int64)",
            "total": "accumulate(my_module.Total(price))",
        },
    }
    (folder / "job.yaml").write_text(text_of(folder, query=query))
    program = Path(sys.executable).with_name("skypane")
    done = subprocess.run(
        [program, "run", "job.yaml", "--drain", "--allow", "my_module"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted: dict[tuple[int, str], list[float]] = {}
    for minute, row in enumerate(offers()):
        if row["price"] is not None:
            wanted.setdefault((minute // 60, row["city"]), []).append(row["price"])
    rows = written(folder / "out").to_pylist()
    assert {place(row): (row["total"], row["rises"]) for row in rows} == {
        key: (sum(prices), sum(after > before for before, after in pairwise(prices))) for key, prices in wanted.items()
    }
