"""A session may keep any time zone: what is answered, and what is written, is the same everywhere."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow.csv import write_csv
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from tests.checkout import PYTHONPATH
from tests.parameters import slow_but
from tests.runtime.scenarios import lines_of
from tests.runtime.streams import (
    SECOND,
    NaiveWatermark,
    Window,
    answers,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.control.placement import PlacementChoice
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.runtime import local
from skypane.runtime.spark.engine import window_program
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.function import Call
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.windows import Windows

CLOCKS_GO_BACK = 1_730_613_600  # in New York, 3 November 2024: the hour before occurs twice
ZONES, ZONES_OF_UTC = ["America/New_York", "Asia/Kathmandu"], ["Etc/UTC", "GMT"]
KINDS = ["without zone", "with zone"]
PARETO = sp.low("price") * sp.high("rating")
OPTIONS: dict[str, Any] = {"time": "ts", "window": "50 seconds", "slide": "20 seconds"}
PLAN = Plan(sp.Skyline(PARETO, ("sensor",)), Windows(50 * SECOND, 20 * SECOND), "ts", sp.Watermark("20 seconds"))


def batches_of(zone: str | None) -> list[pa.Table]:
    """Return batches of times around the hour that occurs twice, `sent` an hour earlier, and times inside a list."""
    return [
        batch.append_column(
            "seen", pa.array([[time] for time in batch["sent"].to_pylist()], pa.list_(batch["ts"].type))
        )
        for batch in late_rows(5, start=(CLOCKS_GO_BACK - 60) * SECOND, zone=zone)
    ]


def windows(table: pa.Table) -> list[Window]:
    """Return the windows of an output, the one time of each list for the list."""
    column = table.schema.get_field_index("seen")
    return windows_of(table.set_column(column, "seen", pc.list_flatten(table["seen"])))


def job_on(rows: DataFrame, folder: Path, **options: Any) -> sp.Job:
    own: dict[str, Any] = {"progress": PLAN.progress, "checkpoint": folder / "checkpoint"}
    return sp.stream(rows, PLAN.query, **OPTIONS, **own | options)


def asked(rows: DataFrame) -> pa.Table:
    """Return the same windows of a static frame, in order."""
    return sp.skyline(rows, PARETO, by="sensor", **OPTIONS).toArrow().sort_by("window_start")


class Everywhere(sp.Sink):
    """Hands the answers to a sink of every kind; the folder of parquet comes last, because it moves the files."""

    def __init__(self, folder: Path) -> None:
        self.memory = sp.Memory()
        self.frames: list[pa.Table] = []
        #: the answers' columns, as Spark has them
        self.schema = StructType()
        self.parquet = sp.Directory(str(folder / "parquet"))
        json_lines = sp.Directory(str(folder / "json"), "json")
        self._all = [self.memory, Call(self._call), sp.Console(), json_lines, self.parquet]

    def _call(self, frame: DataFrame, batch_id: int) -> None:
        del batch_id
        self.frames.append(frame.toArrow().cast(self.memory.table().schema))
        self.schema = frame.schema

    def open(self, claim: QueryStart) -> None:
        for each in self._all:
            each.open(claim)

    def stage(self, driver: str) -> Any:
        return self.parquet.stage(driver)

    def write(self, spark: SparkSession, rows: BatchRows, batch_id: int) -> None:
        for each in self._all:
            each.write(spark, rows, batch_id)


def session_in(zone: str, spark: SparkSession) -> SparkSession:
    """Return a session in another zone; its settings are its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    return session


@pytest.fixture
def elsewhere(spark: SparkSession, zone: str) -> SparkSession:
    return session_in(zone, spark)


@pytest.mark.core
@pytest.mark.parametrize(
    ("zone", "kind", "where"),
    [
        ("America/New_York", "without zone", "driver"),
        ("Asia/Kathmandu", "with zone", "workers"),
        pytest.param("America/New_York", "with zone", "driver", marks=pytest.mark.slow),
        pytest.param("Asia/Kathmandu", "without zone", "workers", marks=pytest.mark.slow),
        pytest.param("Etc/UTC", "with zone", "driver", marks=pytest.mark.slow),
        pytest.param("GMT", "with zone", "workers", marks=pytest.mark.slow),
    ],
)
def test_a_stream_in_any_zone_answers_as_the_oracle(
    kind: str, where: str, elsewhere: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = PlacementChoice("spark" if where == "workers" else "driver")
    monkeypatch.setattr(window_program, "place_windows", lambda _, __: Decision("placement", place, "as tested"))
    batches = batches_of("UTC" if kind == "with zone" else None)
    write_batches(tmp_path / "in", batches)
    output = Everywhere(tmp_path)
    rows = read_batches(elsewhere, tmp_path / "in", batches[0].schema)
    metrics = finish(job_on(rows, tmp_path, output=output, late=tmp_path / "late"))
    wanted = windows(answers(PLAN, batches))
    assert sum(batch.windows for batch in metrics if (batch.wlq_where == "spark") == (where == "workers")) > 3
    assert windows(parquet_rows(tmp_path / "parquet")) == wanted
    assert windows(output.memory.table()) == wanted
    # A DataFrame of many files promises no order of its rows.
    assert windows(pa.concat_tables(output.frames).sort_by("window_start")) == wanted
    read = elsewhere.read.schema(output.schema).json(str(tmp_path / "json")).toArrow()
    assert windows(read.cast(output.memory.table().schema).sort_by("window_start")) == wanted
    late = elsewhere.read.parquet(str(tmp_path / "late")).select("id", "ts").toArrow()
    naive = NaiveWatermark(10 * SECOND)
    for batch in batches:
        naive.take(batch)
    times = dict(zip(late["id"].to_pylist(), late["ts"].to_pylist(), strict=True))
    assert naive.late
    assert times == {row: time for batch in batches for row, time in _times(batch) if row in naive.late}


def _times(batch: pa.Table) -> Iterator[tuple[int, datetime]]:
    return zip(batch["id"].to_pylist(), batch["ts"].to_pylist(), strict=True)


@pytest.mark.core
@pytest.mark.parametrize("zone", slow_but(ZONES, [*ZONES, *ZONES_OF_UTC]))
def test_a_static_frame_in_any_zone_has_the_same_windows(elsewhere: SparkSession):
    with_zone, without = (pa.concat_tables(batches_of(zone)) for zone in ("UTC", None))
    for rows in (with_zone, without):
        found = windows(asked(elsewhere.createDataFrame(rows, spark_schema(rows.schema)).repartition(3)))
        whole = Plan(PLAN.query, PLAN.windows, "ts", sp.Watermark("10 minutes"))
        last = rows.slice(0, 1).set_column(1, "ts", pa.array([(CLOCKS_GO_BACK + 3_600) * SECOND], rows["ts"].type))
        assert found == windows(answers(whole, [rows, last]))


def written(times: pa.ChunkedArray, zone: str, kind: str) -> list[str]:
    """Return times as people write them in a zone: as its clocks show them, with or without the clocks' distance to UTC."""
    local = [time.astimezone(ZoneInfo(zone)) for time in times.to_pylist()]
    return [str(time if kind == "with zone" else time.replace(tzinfo=None)) for time in local]


def meant(texts: list[str], zone: str) -> list[datetime]:
    """Return what texts mean in a zone; an hour that occurs twice and has no distance to UTC is the first of the two."""
    times = [datetime.fromisoformat(text) for text in texts]
    return [(time if time.tzinfo else time.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC) for time in times]


@pytest.mark.parametrize(("zone", "kind"), slow_but([(ZONES[0], KINDS[0])], product(ZONES, KINDS)))
def test_texts_of_csv_files_mean_the_times_of_the_sessions_zone(
    kind: str, elsewhere: SparkSession, zone: str, tmp_path: Path
):
    """Some of them in the hour that occurs twice; answers go to CSV, which Spark reads as they were meant."""
    plan = replace(PLAN, progress=sp.Watermark("10 seconds"))
    batches = list[pa.Table]()
    for number, batch in enumerate(late_rows(5, start=(CLOCKS_GO_BACK + 3_600 - 60) * SECOND)):
        rows, path = batch.drop_columns(["sent"]), tmp_path / "in" / f"{number}.csv"
        texts = written(rows["ts"], zone, kind)
        path.parent.mkdir(exist_ok=True)
        write_csv(rows.set_column(1, "ts", pa.array(texts)), path)
        os.utime(path, (1_600_000_000 + number,) * 2)
        batches.append(rows.set_column(1, "ts", pa.array(meant(texts, zone), rows["ts"].type)))
    columns = spark_schema(batches[0].schema)
    stream = elsewhere.readStream.schema(columns).option("maxFilesPerTrigger", 1).csv(str(tmp_path / "in"), header=True)
    output = sp.Directory(str(tmp_path / "out"), "csv")
    finish(job_on(stream, tmp_path, output=output, progress=plan.progress))
    wanted = answers(plan, batches)
    read = elsewhere.read.schema(spark_schema(wanted.schema)).csv(str(tmp_path / "out"), header=True).toArrow()
    assert windows_of(read.cast(wanted.schema).sort_by("window_start")) == windows_of(wanted) != []
    static = elsewhere.read.schema(columns).csv(str(tmp_path / "in"), header=True)
    whole = replace(plan, progress=sp.Watermark("1 day"))
    end = [*batches, local.Drain()]
    assert windows_of(asked(static).cast(wanted.schema)) == windows_of(answers(whole, end))


def test_the_zone_may_change_between_two_starts(spark: SparkSession, tmp_path: Path):
    batches = batches_of("UTC")
    for zone, first, last in (("America/New_York", 0, 3), ("Asia/Kathmandu", 3, 6)):
        write_batches(tmp_path / "in", batches[first:last], first=first)
        rows = read_batches(session_in(zone, spark), tmp_path / "in", batches[0].schema)
        finish(job_on(rows, tmp_path, output=str(tmp_path / "out")))
    assert windows(parquet_rows(tmp_path / "out")) == windows(answers(PLAN, batches))


SCRIPT = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
from tests.runtime.late.test_zones import PLAN, batches_of, job_on, windows
from tests.runtime.streams import answers, finish, parquet_rows, read_batches, write_batches

def main(folder, conf):
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    batches = batches_of("UTC")
    write_batches(folder / "in", batches)
    finish(job_on(read_batches(spark, folder / "in", batches[0].schema), folder, output=str(folder / "out"), late=str(folder / "late")))
    print(spark.conf.get("spark.sql.session.timeZone"), windows(parquet_rows(folder / "out")) == windows(answers(PLAN, batches)))
    spark.stop()

if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
"""


def run_elsewhere(folder: Path, conf: dict[str, str], **environment: str) -> list[str]:
    """Run a stream in a process of its own, in a session as a user makes one; return its last line's words."""
    inherited = {name: value for name, value in os.environ.items() if not re.match("SPARK_(?!SUBMIT_OPTS)", name)}
    environment = inherited | {"PYTHONPATH": PYTHONPATH, "PYSPARK_PYTHON": sys.executable} | environment
    script = folder / "script.py"
    script.write_text(SCRIPT)
    return lines_of(script, folder, json.dumps(conf), env=environment, cwd=folder)[-1].split()


@pytest.mark.parametrize("zone", slow_but((), [*ZONES, *ZONES_OF_UTC, "Europe/Berlin"], ZONES[:1]))
def test_a_session_of_a_users_own_may_take_the_zone_of_its_machine(zone: str, tmp_path: Path):
    assert run_elsewhere(tmp_path, {"spark.master": "local[2]"}, TZ=zone) == [zone, "True"]
