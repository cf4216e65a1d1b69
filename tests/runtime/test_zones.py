"""A session may keep any time zone: what is answered, and what is written, is the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from tests.runtime.streams import (
    SECOND,
    NaiveKSlack,
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
from skypane.control import placement
from skypane.operators.skyline import SkylineQuery
from skypane.plan import Plan
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.call import Call
from skypane.windows import Windows

CLOCKS_GO_BACK = 1_730_613_600  # in New York, 3 November 2024: the hour before is told twice
ZONES = ["Etc/UTC", "GMT", "America/New_York", "Asia/Kathmandu"]
PARETO = sp.low("price") * sp.high("rating")
PLAN = Plan(SkylineQuery(PARETO, ("sensor",)), Windows(50 * SECOND, 20 * SECOND), "ts", sp.KSlack())


def batches_of(zone: str | None) -> list[pa.Table]:
    """Return batches of times around the hour that is told twice, `sent` an hour earlier, and times inside a list."""
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

    def open(self, owner: str) -> None:
        for each in self._all:
            each.open(owner)

    def stage(self) -> Any:
        return self.parquet.stage()

    def write(self, spark: SparkSession, rows: Answers, batch_id: int) -> None:
        for each in self._all:
            each.write(spark, rows, batch_id)


@pytest.fixture(params=ZONES)
def elsewhere(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session in another zone; its settings are its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", request.param)
    yield session
    session.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize("kind", ["with zone", "without zone"])
@pytest.mark.parametrize("where", ["driver", "workers"])
def test_a_stream_in_any_zone_answers_as_the_oracle(
    kind: str, where: str, elsewhere: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(placement, "JOB_SECONDS", -1.0 if where == "workers" else 1e9)
    batches = batches_of("UTC" if kind == "with zone" else None)
    write_batches(tmp_path / "in", batches)
    output = Everywhere(tmp_path)
    rows = read_batches(elsewhere, tmp_path / "in", batches[0].schema)
    metrics = finish(
        sp.skyline(
            rows,
            PARETO,
            by="sensor",
            time="ts",
            window="50 seconds",
            slide="20 seconds",
            checkpoint=tmp_path / "checkpoint",
            output=output,
            late=tmp_path / "late",
        )
    )
    wanted = windows(answers(PLAN, batches))
    assert sum(batch.windows for batch in metrics if (batch.wlq_where == "spark") == (where == "workers")) > 3
    assert windows(parquet_rows(tmp_path / "parquet")) == wanted
    assert windows(output.memory.table()) == wanted
    # A DataFrame of many files promises no order of its rows.
    assert windows(pa.concat_tables(output.frames).sort_by("window_start")) == wanted
    read = elsewhere.read.schema(output.schema).json(str(tmp_path / "json")).toArrow()
    assert windows(read.cast(output.memory.table().schema).sort_by("window_start")) == wanted
    late = elsewhere.read.parquet(str(tmp_path / "late")).select("id", "ts").toArrow()
    naive = NaiveKSlack(10 * SECOND)
    for batch in batches:
        naive.take(batch)
    times = dict(zip(late["id"].to_pylist(), late["ts"].to_pylist(), strict=True))
    assert naive.late
    assert times == {row: time for batch in batches for row, time in _times(batch) if row in naive.late}


def _times(batch: pa.Table) -> Iterator[tuple[int, datetime]]:
    return zip(batch["id"].to_pylist(), batch["ts"].to_pylist(), strict=True)
