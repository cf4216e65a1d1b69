"""A driver dies between the delivery of a batch and its commit, and the next start has another definition.

The batch is finished as it was begun, then the change takes effect: every sink holds what it would hold if the driver had
committed the batch, had been stopped, and the change had been started then.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.chaos import naive
from tests.runtime.connect_features import unfinished
from tests.runtime.streams import ended, finish

import skypane as sp
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.testing import Session

BATCHES = naive.rows(5, 16)
DELIVERED = 6
"""The batch that the driver has delivered when it dies."""

Change = tuple[dict[str, Any], dict[str, Any]]


def aggregate(**more: Any) -> sp.Aggregate:
    functions: dict[str, Any] = {"n": sp.count(), "low": sp.min("price"), "total": sp.sum("weight")}
    return sp.Aggregate("sensor", **functions | more)


def without(name: str) -> sp.Aggregate:
    functions: dict[str, Any] = {key: one for key, one in aggregate().functions if key != name}
    return sp.Aggregate("sensor", **functions)


def watermark(delay: str, **more: Any) -> dict[str, Any]:
    return {"progress": sp.Watermark(delay, **more)}


CHANGES: dict[str, Change] = {
    "a smaller delay": (watermark("30 seconds"), watermark("5 seconds")),
    "a larger delay": (watermark("5 seconds"), watermark("2 minutes")),
    "rows far ahead": (watermark("30 seconds"), watermark("30 seconds", max_ahead="1 hour")),
    "slack": ({"progress": sp.KSlack()}, {"progress": sp.KSlack(max_slack="10 seconds")}),
    "a budget": ({"progress": sp.AqKSlack(0.01)}, {"progress": sp.AqKSlack(0.2)}),
    "having": ({}, {"query": aggregate(having="n > 3")}),
    "no having": ({"query": aggregate(having="n > 3")}, {}),
    "top": ({}, {"query": aggregate(top=1, rank_by="total")}),
    "required": ({}, {"query": aggregate(required=["price", "rating"])}),
    "a function less": ({}, {"query": without("total")}),
    "a smaller k": ({"query": sp.TopK(5, "rating", "sensor")}, {"query": sp.TopK(2, "rating", "sensor")}),
    "amended for longer": ({"amend": "30 seconds"}, {"amend": "5 minutes"}),
    "not amended": ({"amend": "30 seconds"}, {}),
    "early": ({"early": "40 seconds"}, {"early": "10 seconds"}),
}
OF_FOLDERS: dict[str, Change] = {
    "amended": ({}, {"amend": "30 seconds"}),
    "a function more": ({}, {"query": aggregate(high=sp.max("price"))}),
    "of several, a smaller k": (
        {"queries": {"best": sp.TopK(5, "rating"), "sums": aggregate()}},
        {"queries": {"best": sp.TopK(2, "rating"), "sums": aggregate()}},
    ),
    "of several, one more": (
        {"queries": {"sums": aggregate()}},
        {"queries": {"sums": aggregate(), "best": sp.TopK(2, "rating")}},
    ),
    "of several, slack": (
        {"queries": {"sums": aggregate()}, "progress": sp.KSlack()},
        {"queries": {"sums": aggregate()}, "progress": sp.KSlack(max_slack="10 seconds")},
    ),
    "of a continuous skyline": ({"continuous": "price MIN"}, {"continuous": "price MIN", **watermark("5 seconds")}),
    "stays": ({"query": "price MIN"}, {"query": "price MIN", "answers": "stays"}),
}


def folder_rows(path: Path) -> list[str]:
    tables = [pq.read_table(file) for file in sorted(path.rglob("[!_]*.parquet"))]
    return [repr(row) for table in tables for row in table.to_pylist()]


def json_rows(path: Path) -> list[str]:
    return [
        repr(json.loads(line)) for file in sorted(path.glob("[!_]*.json")) for line in file.read_text().splitlines()
    ]


def sqlite_rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path.parent / "db")) as database:
        return [*map(repr, database.execute(f"SELECT * FROM {path.name}"))]  # noqa: S608 - answers, or late


def delta_rows(path: Path) -> list[str]:
    from deltalake import DeltaTable  # noqa: PLC0415 - an extra

    return [*map(repr, pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist())]


def catalog_of(path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{path.parent}/catalog", "warehouse": f"file://{path.parent}/tables"}


def iceberg_rows(path: Path) -> list[str]:
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - an extra

    table = load_catalog("default", **catalog_of(path)).load_table(f"of.{path.name}")
    return [*map(repr, table.scan().to_arrow().to_pylist())]


SINKS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], list[str]]]] = {
    "folder": (lambda path: sp.Directory(str(path)), folder_rows),
    "json": (lambda path: sp.Directory(str(path), "json"), json_rows),
    "table of a database": (lambda path: sp.Jdbc(f"sqlite:{path.parent}/db", path.name), sqlite_rows),
    "table of Delta": (lambda path: sp.Delta(str(path)), delta_rows),
    "table of Iceberg": (lambda path: sp.Iceberg(f"of.{path.name}", options=catalog_of(path)), iceberg_rows),
}


class Stream:
    """A job over batches that come, whose definition may be another at each start.

    late   whether it has a sink for late rows, without which it reads only the columns that its query needs
    more   further batches that are a part of the first one
    """

    def __init__(self, folder: Path, kind: str = "folder", *, late: bool = True, more: int = 0) -> None:
        self.folder, self.late, self.more, (self.sink, self.rows) = folder, late, more, SINKS[kind]
        self.arriving: list[pa.Table] = []
        folder.mkdir(parents=True)

    def job(self, query: Any = None, amend: str | None = None, **more: Any) -> sp.Job:
        late = self.sink(self.folder / "late") if self.late else None
        common = {
            **watermark("30 seconds"),
            "time": "ts",
            "late": late if amend is None else sp.Amend(amend, late),
            "checkpoint": str(self.folder / "checkpoint"),
            "output": self.sink(self.folder / "answers"),
            **more,
        }
        rows = Session(seed=3).stream(self.arriving, naive.SCHEMA)
        if (preference := common.pop("continuous", None)) is not None:
            common.pop("time")
            return sp.continuous_skyline(rows, preference, time="ts", window="50 seconds", every="5 seconds", **common)
        common |= {"window": "50 seconds", "slide": "20 seconds"}
        if (queries := common.pop("queries", None)) is not None:
            return sp.streams(rows, queries, **common)
        return sp.stream(rows, aggregate() if query is None else query, **common)

    def take(self, last: int, **definition: Any) -> None:
        """Process the batches up to `last`."""
        self.come(last + 1 - len(self.arriving))
        finish(self.job(**definition))

    def come(self, batches: int) -> None:
        """Let further batches come."""
        for number in range(len(self.arriving), len(self.arriving) + batches):
            first = number + self.more if number else 0
            self.arriving.append(BATCHES[first * naive.SIZE : (number + self.more + 1) * naive.SIZE])

    def deliver(self, last: int, patched: pytest.MonkeyPatch, **definition: Any) -> None:
        """Start a job over the batches up to `last`, which delivers the next one, and dies before its commit."""

        def die(*_: Any) -> None:
            raise DiedError

        with patched.context() as once:
            once.setattr(Ledger, "commit", die)
            with pytest.raises(sp.SkypaneError):
                self.take(last, **definition)

    def held(self) -> dict[str, Counter[str]]:
        roles = ("answers", "late") if self.late else ("answers",)
        return {role: Counter(self.rows(self.folder / role)) for role in roles}


class DiedError(Exception):
    """Ends a driver."""


FEW = ("a larger delay", "a function less", "a smaller k", "early")


@pytest.mark.parametrize(
    ("change", "kind"), [(change, kind) for change in CHANGES for kind in SINKS if kind == "folder" or change in FEW]
)
def test_a_begun_batch_is_finished_as_it_was_begun(
    change: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    goes_on(CHANGES[change], tmp_path, monkeypatch, kind=kind)


@pytest.mark.parametrize("change", OF_FOLDERS)
def test_in_a_folder_it_is_after_further_changes(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    goes_on(OF_FOLDERS[change], tmp_path, monkeypatch)


@pytest.mark.parametrize("change", ["a smaller delay", "a function less", "required"])
def test_it_is_so_where_only_needed_columns_are_read(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    goes_on(CHANGES[change], tmp_path, monkeypatch, late=False)


@pytest.mark.parametrize("change", ["a smaller delay", "having", "a function less"])
def test_it_is_so_for_the_first_batch(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    goes_on(CHANGES[change], tmp_path, monkeypatch, delivered=0, more=4)


def goes_on(
    change: Change, folder: Path, patched: pytest.MonkeyPatch, delivered: int = DELIVERED, **options: Any
) -> None:
    """Check a stream whose driver died after a delivery, and whose next start is another job, by one that lived on."""
    before, after = change
    died, calm = (Stream(folder / name, **options) for name in ("died", "calm"))
    for stream in (died, calm):
        if delivered:
            stream.take(delivered - 1, **before)
    died.deliver(delivered, patched, **before)
    calm.take(delivered, **before)
    assert any(died.held().values())
    if delivered:
        assert died.held() == calm.held()
    for stream in (died, calm):
        stream.take(9, **after)
        stream.take(11, **after)
    assert died.held() == calm.held()


@pytest.mark.spark
def test_on_spark_it_is_so_too(spark: SparkSession, tmp_path: Path):
    unfinished(spark, tmp_path)
    died, calm = (folder_rows(tmp_path / name / "out") for name in ("died", "calm"))
    assert sorted(died) == sorted(calm)


def test_a_drain_is_finished_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before, after = CHANGES["amended for longer"]
    died, calm = (Stream(tmp_path / name) for name in ("died", "calm"))
    for stream in (died, calm):
        stream.take(DELIVERED, **before)
    with monkeypatch.context() as once:
        once.setattr(Ledger, "commit", lambda *_: (_ for _ in ()).throw(DiedError))
        with pytest.raises(DiedError):
            ended(died.job(**before)).drain()
    ended(calm.job(**before)).drain()
    for stream in (died, calm):
        stream.take(11, **after)
    assert died.held() == calm.held()


def test_the_earlier_job_continues_until_the_later_one_has_committed_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before, after = CHANGES["a function less"]
    died, calm = (Stream(tmp_path / name) for name in ("died", "calm"))
    died.take(DELIVERED - 1, **before)
    died.deliver(DELIVERED, monkeypatch, **before)
    died.deliver(DELIVERED, monkeypatch, **after)
    for stream in (died, calm):
        stream.take(11, **before)
    assert died.held() == calm.held()


def test_a_batch_of_a_changed_job_is_finished_by_it_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before, after = CHANGES["a function less"]
    died, calm = (Stream(tmp_path / name) for name in ("died", "calm"))
    for stream in (died, calm):
        stream.take(DELIVERED - 1, **before)
    died.deliver(DELIVERED, monkeypatch, **after)
    with pytest.raises(
        sp.CheckpointError, match=f"batch {DELIVERED} was delivered by the job as it was.*once as it was"
    ):
        died.take(DELIVERED, query=aggregate(having="n > 3"))
    for stream in (died, calm):
        stream.take(11, **after)
    assert died.held() == calm.held()


def test_what_only_the_job_as_it_was_can_finish_is_refused_with_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before: dict[str, Any] = {"query": aggregate(most=sp.max("rating"))}
    after: dict[str, Any] = {}
    died, calm = (Stream(tmp_path / name, late=False) for name in ("died", "calm"))
    for stream in (died, calm):
        stream.take(DELIVERED - 1, **before)
    died.deliver(DELIVERED, monkeypatch, **before)
    calm.take(DELIVERED, **before)
    there = died.job(**after).settings.rows
    without = there.remove(there.get_field_index("rating"))
    monkeypatch.setattr(naive, "SCHEMA", without)
    with pytest.raises(sp.CheckpointError, match="it reads the column 'rating' of type 'double', which is gone"):
        died.take(DELIVERED, **after)
    monkeypatch.setattr(naive, "SCHEMA", there)
    died.take(DELIVERED, **before)
    for stream in (died, calm):
        stream.take(11, **after)
    assert died.held() == calm.held()
