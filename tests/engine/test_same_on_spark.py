"""Each feature of the engine on one stream with everything in it: Spark and the session without Java do the same.

The other tests of this folder have no Java; this file is why they may do without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.engine import (
    test_amended,
    test_handover,
    test_held,
    test_query_changes,
    test_readmission,
    test_stays,
    test_streams,
)
from tests.engine.jobs import latest, ledger_of
from tests.engine.reading import read_answers
from tests.engine.test_stays import bag
from tests.runtime.driver import Task
from tests.runtime.driver import job_of as plain_job
from tests.runtime.streams import (
    AnySession,
    ended,
    finish,
    late_rows,
    parquet_rows,
    read_batches,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.control.exchange import Exchange, ExchangeState
from skypane.runtime.spark.engine.query_changes import Begin
from skypane.testing import Session

ROWS = late_rows(53, batches=8, rows=70)
SCHEMA = ROWS[0].schema

Jobs = Callable[[AnySession, Path, int], sp.Job]
"""The job of a start, by its number."""


@dataclass(frozen=True)
class Feature:
    """Starts of a stream: `jobs` makes that of each, `cuts` say which batches it takes, `drained` which of them drain.

    begins    the start at which another query takes over
    readmits  the start after which rejected rows come back, repaired
    """

    jobs: Jobs
    batches: list[pa.Table]
    cuts: tuple[int, ...]
    drained: frozenset[int] = frozenset()
    begins: int | None = None
    readmits: int | None = None
    reason: str = test_readmission.REASON


def amended(session: AnySession, folder: Path, _: int) -> sp.Job:
    return test_amended.job_of(session, folder, test_amended.QUERIES["aggregate that loses its rows"])


def early(session: AnySession, folder: Path, _: int) -> sp.Job:
    late = sp.Amend("12 seconds", changes=True)
    query = test_amended.QUERIES["skyline"]
    return test_amended.job_of(session, folder, query, late=late, early="5 seconds")


def stays(session: AnySession, folder: Path, start: int) -> sp.Job:
    form = "windows" if start == 1 else "stays"
    return test_stays.job_of(session, folder, test_amended.QUERIES["aggregate"], answers=form)


def several(session: AnySession, folder: Path, _: int) -> sp.Job:
    return test_streams.job_of(session, folder)


def changed(session: AnySession, folder: Path, start: int) -> sp.Job:
    old, new = test_query_changes.CHANGES["a function that others answer"]
    return plain_job(session, Task(str(folder)), old if start == 0 else new)


def taken_over(session: AnySession, folder: Path, start: int) -> sp.Job:
    if start == 0:
        return plain_job(session, Task(str(folder)), test_handover.OLD)
    return test_handover.job(session, Task(str(folder)), test_handover.NEW)


def held(session: AnySession, folder: Path, _: int) -> sp.Job:
    return test_held.job(session, folder, test_held.plan(sp.KSlack(patience=30)), HELD[0].schema)


def readmitted(session: AnySession, folder: Path, _: int) -> sp.Job:
    return test_amended.job_of(session, folder, test_readmission.QUERY)


def scaled(session: AnySession, folder: Path, _: int) -> sp.Job:
    workers = sp.WorkerOptions(wlq_workers=2, elastic=sp.Threshold(every=2))
    return plain_job(session, Task(str(folder)), workers=workers)


def continuous(session: AnySession, folder: Path, _: int) -> sp.Job:
    return sp.continuous_skyline(
        read_batches(session, folder / "in", SCHEMA), "price MIN, rating MAX", time="ts", window="50 s", by="sensor",
        progress=sp.Watermark("20 seconds"), checkpoint=folder / "checkpoint", output=folder / "out", late=folder / "late",
    )  # fmt: skip


HELD = [
    test_held.rows(0, test_held.seconds(0, 40)),
    test_held.rows(100, [*test_held.seconds(40, 60), 52 * test_held.WEEK, 99 * test_held.WEEK]),
    test_held.rows(200, [*test_held.seconds(60, 80), 52 * test_held.WEEK]),
    test_held.rows(300, test_held.seconds(80, 120)),
]
FEATURES: dict[str, Feature] = {
    "amended": Feature(amended, ROWS, (4, 8), frozenset({0, 1})),
    "early": Feature(early, ROWS, (4, 8), frozenset({1})),
    "stays": Feature(stays, ROWS, (3, 5, 8), frozenset({2})),
    "several queries": Feature(several, ROWS, (5, 8), frozenset({1})),
    "a changed query": Feature(changed, ROWS, (4, 8), frozenset({1})),
    "another query": Feature(taken_over, ROWS, (4, 8), frozenset({1}), begins=1),
    "held rows": Feature(held, HELD, (2, 4), frozenset({1})),
    "readmitted rows": Feature(readmitted, test_readmission.batches_with_nulls(), (4, 6), readmits=0),
    "workers": Feature(scaled, ROWS, (4, 8)),
    "continuous": Feature(continuous, ROWS, (4, 8), frozenset({1})),
}


def run(session: AnySession, folder: Path, feature: Feature) -> None:
    for start, (first, last) in enumerate(pairwise([0, *feature.cuts])):
        write_batches(folder / "in", feature.batches[first:last], first=first)
        begin: Begin | None = "at_offsets" if start == feature.begins else None
        handle = ended(feature.jobs(session, folder, start), begin=begin)
        if start == feature.readmits:
            handle.readmit(feature.reason, test_readmission.repair)
        if start in feature.drained:
            handle.drain()


def outcome(folder: Path) -> dict[str, Any]:
    """Return what a stream has left: the rows of each output file by batch, and what the ledger says of each batch."""
    outputs: dict[str, Counter[str]] = {}
    for path in sorted(folder.glob("[ol]*/**/part-*.parquet")):  # out and late
        name = f"{path.parent.relative_to(folder)} {path.name.split('-')[1]}"
        outputs.setdefault(name, Counter()).update(bag(pq.read_table(path)))
    said = (
        "batch_id",
        "rows",
        "windows",
        "window_rows",
        "late_rows",
        "quarantined",
        "held_rows",
        "punctuation",
        "totals",
    )
    history = [{name: batch[name] for name in said} for batch in ledger_of(folder).history(100)]
    manifest = latest(folder)
    panes = sorted(manifest.operator.get("panes", {}))
    # The gaps of the stream are measured by runs of rows, and tasks cut the rows into others.
    progress = {name: value for name, value in manifest.progress.items() if name != "frontier"}
    return {"outputs": outputs, "history": history, "panes": panes, "progress": progress}


@pytest.mark.parametrize("name", FEATURES)
def test_spark_and_the_session_without_java_do_the_same(name: str, spark: SparkSession, tmp_path: Path):
    on_spark, without = tmp_path / "spark", tmp_path / "without"
    run(spark, on_spark, FEATURES[name])
    run(Session(), without, FEATURES[name])
    assert outcome(on_spark) == outcome(without)
    assert outcome(on_spark)["outputs"], "there are answers"
    for folder in sorted({path.parent for path in (on_spark / "out").rglob("part-*.parquet")}):
        if name not in {"another query", "continuous"}:  # files of two queries; updates
            rows = read_answers(folder)
            assert bag(sp.read_answers(spark, folder).toArrow().select(rows.column_names)) == bag(rows)


@pytest.mark.parametrize(("splitting", "folder"), [("PB_RR", True), ("AS_PID", False)])
def test_workers_and_exchange_apply_to_all(
    splitting: str, folder: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """With an exchange, by the panes of the query with the shortest ones, and windows on workers, answers are the same."""
    monkeypatch.setattr(Exchange, "init", lambda _: ExchangeState(needed=True, because="the test needs it"))
    tables = test_streams.batches(7)
    write_batches(tmp_path / "in", tables, files=3)
    rows = read_batches(spark, tmp_path / "in", SCHEMA, files=3)
    memories = {name: sp.Memory() for name in test_streams.ASKED}
    workers = sp.WorkerOptions(plq_workers=2, wlq_workers=2, splitting=splitting, elastic=sp.Threshold(every=2))
    job = sp.streams(
        rows, test_streams.ASKED, time="ts", window=test_streams.WINDOWS, source="sensor", workers=workers, progress=sp.Watermark("20 seconds"),
        checkpoint=tmp_path / "checkpoint", output=tmp_path / "out" if folder else memories,
    )  # fmt: skip
    costs = replace(job.settings.costs, job=0.0, window=1.0, shard_per_row=0.0)
    seen = finish(replace(job, settings=replace(job.settings, costs=costs)))
    for name in test_streams.ASKED:
        rows_of = parquet_rows(tmp_path / "out" / name) if folder else memories[name].table()
        assert windows_of(rows_of.sort_by("window_start")) == test_streams.as_alone(name, tables), name
    assert not [*(tmp_path / "checkpoint" / "skypane" / "answers").iterdir()]
    assert {metrics.exchange for metrics in seen} == {True}
    assert {"spark", "threads"} & {metrics.wlq_where for metrics in seen}
    assert any(metrics.decision("workers") for metrics in seen), "the elastic policy sees the seconds of all queries"
