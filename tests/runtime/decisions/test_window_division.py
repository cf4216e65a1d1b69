"""How windows are divided among tasks may change in every batch: the answers are those of the definition."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.parameters import slow_but
from tests.rows import multiset
from tests.runtime import driver
from tests.runtime.decisions.test_control_loop import last_batch
from tests.runtime.driver import Task
from tests.runtime.streams import AnySession, answers, finish, late_rows, parquet_rows, write_batches

import skypane as sp
from skypane.control.costs import Costs
from skypane.control.window_costs import LearnedWindows
from skypane.control.window_division import Division, Piece, WindowDivision, WindowsToDivide
from skypane.plan import Plan
from skypane.policy import Decision
from skypane.runtime.spark.engine import window_program
from skypane.testing import Session

ON_SPARK = Costs(job=0.0, threads=1e3, window=1.0)
IN_THREADS = Costs(job=1e3, threads=0.0, window=1.0, window_per_row=1.0, compared_per_row=1.0)


class AnyDivision(WindowDivision):
    """Divides windows in another way each time: any runs, any parts of each, dealt to any tasks."""

    def decide(self, state: LearnedWindows, known: WindowsToDivide) -> tuple[LearnedWindows, Decision[Division]]:
        rng = random.Random(repr(known.sizes))
        count = len(known.sizes)
        tasks: dict[int, list[Piece]] = {}
        for begin, end in pairwise(sorted({0, count, *(rng.randrange(count) for _ in range(3))})):
            parts = rng.randint(1, 3) if known.due.keys else 1
            for part in range(parts):
                tasks.setdefault(rng.randrange(3), []).append(Piece(begin, end, part, parts))
        return state, Decision("windows", Division(tuple(map(tuple, tasks.values()))), "at random")


def job_of(session: AnySession, folder: Path, costs: Costs, query: Any, more: dict[str, Any]) -> sp.Job:
    windows = {"window": "40 s", "slide": "5 s", "workers": sp.WorkerOptions(wlq_workers=3)}
    job = driver.job_of(session, Task(str(folder), late=False), query, **windows | more)
    return replace(job, settings=replace(job.settings, costs=costs))


BEST = sp.Skyline("price MIN, rating MAX", by="sensor")
SUMS = sp.Aggregate("sensor", n=sp.count(), total=sp.sum("weight"))
DIVIDED: dict[str, tuple[sp.Query, dict[str, Any]]] = {
    "skyline": (BEST, {}),
    "amended and early": (BEST, {"late": sp.Amend("2 minutes"), "early": "10 seconds"}),
    "changes": (SUMS, {"late": sp.Amend("2 minutes", changes=True)}),
}


def divisions(seen: list[sp.BatchMetrics]) -> list[Decision[Any]]:
    """Return the decisions on the division of windows, of the batches that have one."""
    return [decision for metrics in seen if (decision := metrics.decision("windows")) is not None]


def assert_as_defined(job: sp.Job, out: Path, batches: list[pa.Table]) -> None:
    assert isinstance(job.settings.plan, Plan)
    found, wanted = parquet_rows(out), answers(job.settings.plan, batches)
    assert multiset(found) == multiset(wanted.select(found.column_names))


@pytest.mark.parametrize("name", slow_but(["amended and early"], DIVIDED))
def test_windows_may_be_divided_otherwise_in_every_batch_and_over_a_restart(
    name: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    query, more = DIVIDED[name]
    batches = late_rows(17, batches=6, rows=60)
    write_batches(tmp_path / "in", batches[:3])
    monkeypatch.setattr(window_program, "WindowDivision", AnyDivision)
    first = job_of(session, tmp_path, ON_SPARK, query, more)
    seen = finish(first)
    write_batches(tmp_path / "in", batches[3:], first=3)
    seen += finish(job_of(session, tmp_path, IN_THREADS, query, more))
    decided = [decision.value for decision in divisions(seen)]
    assert len({str(value) for value in decided}) > 1, decided
    assert any(value["parts"] > 1 for value in decided)
    assert "spark" in {metrics.wlq_where for metrics in seen}
    assert_as_defined(first, tmp_path / "out", batches)


def test_a_stream_divides_windows_by_what_its_runs_took_and_continues_so(session: Session, tmp_path: Path):
    """The first decisions say that nothing has been measured; later ones, also after a restart, compare seconds."""
    batches = late_rows(17, batches=10, rows=40)
    write_batches(tmp_path / "in", batches[:7])
    job = job_of(session, tmp_path, ON_SPARK, BEST, {})
    decided = divisions(finish(job))
    assert "no run has been measured yet" in decided[0].because
    assert decided[-1].figures["best"] <= decided[-1].figures["fixed"]
    assert last_batch(tmp_path).control["windows"]["runs"] > 0
    write_batches(tmp_path / "in", batches[7:], first=7)
    assert all(decision.figures for decision in divisions(finish(job)))
    assert_as_defined(job, tmp_path / "out", batches)
