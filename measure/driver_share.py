"""What comes to the driver in a batch, for 10, 100 and 1,000 tasks: counted from the engine's own descriptors.

    python -m measure.driver_share [--docs docs] [--tasks 10 100 1000] [--rows 1000000] [--keys 1000 1000000] [--panes 4]

The tasks of a batch are run one after the other in this process, by the code that runs on executors; their reports go
through the engine's own steps in the driver, up to the manifest. Spark is not started: its scheduling of tasks is not
in the figures. Bytes and counts are those of one batch of `rows` rows, whose event times fill `panes` panes; a window holds
all of them. A window's tasks are alike, so one is run, and its report counts for all.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

import skypane as sp
from measure.tables import markdown_table, replace_between
from skypane.control.costs import DEFAULT_COSTS
from skypane.control.parallelism import Workers
from skypane.control.placement import DueWindows, PlacementChoice, place_windows
from skypane.control.window_division import WindowDivision, WindowsToDivide
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import wlq
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.committed_state import CommittedState
from skypane.runtime.spark.engine.control_loop import ControlLoop
from skypane.runtime.spark.engine.ingest import DRIVER_ROWS, Ingest
from skypane.runtime.spark.engine.partials import PARTIALS
from skypane.runtime.spark.engine.plq import LiftReports, LiftStage, TaskReport
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.timer import Timer
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.snapshots import to_json
from skypane.windows import Windows
from skypane.wording import count, size

SECOND: Final = 1_000_000
SCHEMA: Final = pa.schema({"ts": pa.timestamp("us", "UTC"), "key": pa.int64(), "x": pa.float64()})
HEAD: Final = (
    "tasks", "keys", "partials: rows", "in files", "reports to the driver", "partials that they name",
    "rows that the driver merges", "manifest", "the driver's CPU, ms", "a window is answered", "sent to each of its tasks",
    "its reports", "read by each of its tasks",
)  # fmt: skip


@dataclass(frozen=True)
class Share:
    """What one batch comes to; sizes in bytes."""

    tasks: int
    keys: int
    partial_rows: int
    in_files: int
    reports: int
    partials: int
    merged_rows: int
    manifest: int
    cpu: float
    window: WindowShare

    def cells(self) -> list[str]:
        return [
            count(self.tasks), count(self.keys), count(self.partial_rows), size(self.in_files), size(self.reports),
            count(self.partials), count(self.merged_rows), size(self.manifest), f"{1e3 * self.cpu:.0f}", *self.window.cells(),
        ]  # fmt: skip


@dataclass(frozen=True)
class WindowShare:
    """Where a window of all panes is answered, and what is sent for that; sizes in bytes."""

    place: PlacementChoice
    stage: int
    reports: int
    read: int

    def cells(self) -> list[str]:
        if self.place.where == "driver":
            return ["in the driver", "-", "-", "-"]
        where = f"in {count(self.place.tasks)} tasks"
        return [where, size(self.stage), size(self.reports), size(self.read)]


def plan_of(panes: int) -> Plan:
    """Return sums by key over a window of so many panes of a second each."""
    return Plan(sp.Aggregate("key", n=sp.count(), total=sp.sum("x")), Windows(panes * SECOND, SECOND), "ts")


def rows_of(number: int, keys: int, panes: int, seed: int) -> pa.RecordBatch:
    """Return the rows that a task reads."""
    rng = np.random.default_rng(seed)
    times = pa.array(np.sort(rng.integers(0, panes * SECOND, number)), pa.timestamp("us", "UTC"))
    return pa.RecordBatch.from_arrays([times, rng.integers(0, keys, number), rng.random(number)], schema=SCHEMA)


def reports_of(stage: LiftStage, tasks: int, rows: int, keys: int, panes: int) -> Iterator[str]:
    """Run the tasks; yield the report of each, as it comes to the driver."""
    for task in range(tasks):
        for report in stage([rows_of(rows // tasks, keys, panes, task)]):
            yield report.column(0)[0].as_py()


def share(tasks: int, rows: int, keys: int, panes: int, folder: Path) -> Share:
    """Run the tasks of a batch in `folder`, which is new, and then the driver's steps; return what came to the driver."""
    plan, store = plan_of(panes), DocumentStore.at(folder)
    intake = Ingest(plan, SCHEMA, store, added=None, transfer=ArrowTransfer(SCHEMA))
    store.child(PARTIALS).make()
    program = WindowedProgram(plan, intake, plan.output_schema(SCHEMA), store.child("answers"))
    state = program.init()
    reports = list(reports_of(LiftStage(plan.query, state.gate(plan), store, 0), tasks, rows, keys, panes))
    began = time.process_time()
    level = LiftReports(tuple(map(TaskReport.from_json, reports)))
    outcome, manifest = committed(program, plan, state, level, tasks)
    cpu = time.process_time() - began
    refs = [pane.ref for pane in level.panes]
    partial_rows = sum(ref.rows for ref in refs)
    merges = partial_rows <= DRIVER_ROWS and len(outcome.state.files) < len(reports)
    return Share(
        tasks=tasks,
        keys=keys,
        partial_rows=partial_rows,
        in_files=sum(ref.size for ref in refs),
        reports=sum(map(len, reports)),
        partials=len(refs),
        merged_rows=partial_rows if merges else 0,
        manifest=len(manifest),
        cpu=cpu,
        window=window_share(plan, outcome.state, store, tasks),
    )


def committed(
    program: WindowedProgram, plan: Plan, state: WindowState, level: LiftReports, tasks: int
) -> tuple[BatchOutcome[WindowState], str]:
    """Take the driver's steps of a batch that answers no window; return the outcome, and the manifest's text."""
    control = ControlLoop(None, Workers(tasks, tasks))
    steered, steering = control.decide(control.init())
    batch = MicroBatch(0, _no_rows(), steering, Timer(), None)
    outcome = program.after_lift(batch, state, level, wait=True)
    after = CommittedState(0, outcome.state, control.observe(steered, outcome.measured), outcome.fingerprint)
    return outcome, json.dumps(to_json(after.manifest(plan.progress, control, outcome.metrics)))


def _no_rows() -> Any:
    """Return nothing in place of the batch's DataFrame, which these steps do not use."""
    return None


def window_share(plan: Plan, state: WindowState, store: DocumentStore, workers: int) -> WindowShare:
    """Decide where a window of all panes is answered; run one of its tasks, if it has any."""
    due = [max(state.open.all_windows(), key=lambda task: len(task.panes))]
    windows = DueWindows(
        windows=1, row_count=wlq.distinct_row_count(due), overlap=plan.windows.overlap, workers=workers,
        keys=wlq.largest_partial(due),
    )  # fmt: skip
    place = place_windows(windows, DEFAULT_COSTS).value
    if place.where == "driver":
        return WindowShare(place, 0, 0, 0)
    policy, known = WindowDivision(), WindowsToDivide(wlq.sizes_of(due), windows, place, DEFAULT_COSTS)
    division = policy.decide(policy.init(), known)[1].value
    store.child("answers").make()
    schema = plan.output_schema(SCHEMA)
    query = plan.window_query(SCHEMA)
    stage = wlq.WindowStage(query, store, store.child("answers"), "0", tuple(due), schema, division)
    report = len(json.dumps(stage.done(0)))
    read = sum(ref.size for _, refs in due[0].panes for ref in refs)
    sent = len(cloudpickle.dumps(stage))  # type: ignore[no-untyped-call]
    return WindowShare(place, sent, report * stage.tasks, read)


def main(arguments: Sequence[str] | None = None) -> None:
    """Count what comes to the driver for each number of tasks and keys."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--tasks", type=int, nargs="*", default=[10, 100, 1000])
    parser.add_argument("--keys", type=int, nargs="*", default=[1_000, 1_000_000])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--panes", type=int, default=4)
    given = parser.parse_args(arguments)
    shares = []
    for keys in given.keys:
        for tasks in given.tasks:
            with TemporaryDirectory(prefix="skypane-share-") as folder:
                shares.append(share(tasks, given.rows, keys, given.panes, Path(folder)))
            print(dict(zip(HEAD, shares[-1].cells(), strict=True)), flush=True)
    setting = f"{count(given.rows)} rows in {given.panes} panes."
    text = f"{setting}\n\n{markdown_table(HEAD, [one.cells() for one in shares])}"
    print(text)
    if given.docs is not None:
        replace_between(given.docs / "scale.md", "driver's share", text)


if __name__ == "__main__":
    main()
