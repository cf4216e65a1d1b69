"""The program of a continuous skyline (paper 4): the processing of one micro-batch.

lift      rows that can ever be on the front become partials of open panes                   ingest.py
advance   the punctuation closes panes; the clock is the start of the first open one         ingest.py
place     rows are compared in the driver, in threads of it, or by tasks on workers          control/placement.py
step      the front takes the rows of closed panes, and emits the updates before the clock   shard_*.py
compact   references to the partials from which the front can be rebuilt are kept

The front in the driver is a cache, which can be rebuilt from its partials. The state only refers to partials of closed
panes, which exist already; when many of their rows are no longer needed, the stored rows are written to a new file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skypane.control.measurements import BatchMeasurements, RunWork
from skypane.control.placement import DueRows, Place, place_rows
from skypane.operators.advance import ProgressStep, drained
from skypane.operators.fronts import RowFront
from skypane.operators.fronts.row_front import ACTION
from skypane.operators.fronts.shards import UNSHARDED, ShardPlan
from skypane.operators.open_panes import OpenPanes
from skypane.plan import ContinuousPlan
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.resources import cores
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.batch_metrics import batch_metrics
from skypane.runtime.spark.engine.ingest import Ingest
from skypane.runtime.spark.engine.partials import PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.engine.plq import LiftReports
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.shard_stage import ShardClient
from skypane.runtime.spark.engine.shard_threads import ShardThreads
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import CheckpointError, Micros

_KEY_IN_0_2: Final = "told"
"""Key of the front's partials in checkpoints of version 0.2."""

STORED: Final = 99_998
"""Task number, in a file's name, of the stored rows that the driver rewrites."""

_SPARE: Final = 50_000
"""Rows beyond twice the stored rows above which the stored rows are rewritten."""
_REFERENCES: Final = 64
"""References above which the stored rows are rewritten."""


@dataclass(frozen=True, slots=True)
class ContinuousState:
    """State of a continuous skyline.

    waiting         progress, and the rows of open panes
    front_partials  partials from which the front can be rebuilt: all rows that it stores, and earlier ones
    current         the rows on the front
    """

    waiting: WindowState
    front_partials: tuple[PartialReference, ...]
    current: pa.Table = field(compare=False)

    @property
    def progress(self) -> ProgressState:
        return self.waiting.progress

    @property
    def drained(self) -> bool:
        """Whether no row waits for the front."""
        return self.waiting.drained

    @property
    def clock(self) -> Micros | None:
        """The time before which all updates have been emitted; None if none have."""
        return self.waiting.open.begin

    @property
    def due(self) -> Micros | None:
        """The newest event time with which the next pane is closed, so that its rows reach the front."""
        punctuation, windows = self.progress.punctuation, self.waiting.open.windows
        if punctuation is None:
            return None
        return self.waiting.when_passed(windows.pane_end(windows.first_open(punctuation)))

    @property
    def files(self) -> frozenset[str]:
        """The files with rows of open panes, held rows, or rows of the front."""
        return self.waiting.files | {ref.file for ref in self.front_partials}

    def snapshot(self) -> dict[str, Any]:
        """Return the state without its progress as a JSON value."""
        return self.waiting.snapshot() | {"front_partials": [ref.snapshot() for ref in self.front_partials]}


class ContinuousProgram:
    """Lifts rows into panes, and adds the rows of closed panes to the front; `update_schema` is that of the updates."""

    def __init__(self, plan: ContinuousPlan, intake: Ingest, update_schema: pa.Schema) -> None:
        self._plan = plan
        self._intake = intake
        self._update_schema = update_schema
        #: the front after the last batch, and its state
        self._cached: tuple[ContinuousState, RowFront] | None = None
        #: whether the sink of the current front has received it since the driver started
        self._delivered = False

    def init(self) -> ContinuousState:
        return ContinuousState(WindowState.initial(self._plan), (), self._intake.schema.empty_table())

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> ContinuousState:
        try:
            refs = operator["front_partials"] if "front_partials" in operator else operator[_KEY_IN_0_2]
            front_partials = tuple(map(PartialReference.restored, refs))
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"the front in the checkpoint cannot be read: {error!r}") from error
        waiting = WindowState.restored(self._plan, progress, operator)
        state = ContinuousState(waiting, front_partials, self._intake.schema.empty_table())
        front = self._front_of(state)
        state = replace(state, current=front.current())
        self._cached = state, front
        return state

    def run(self, batch: MicroBatch, state: ContinuousState) -> BatchOutcome[ContinuousState]:
        """Process a batch."""
        return self._complete(batch, state, *self._intake.lift(batch, state.waiting))

    def drain(self, batch: MicroBatch, state: ContinuousState) -> BatchOutcome[ContinuousState]:
        """Emit all updates up to the end of the last pane that holds a row; the front stays as it is at that time."""
        step = drained(self._plan.progress, state.progress, state.waiting.open)
        return self._complete(batch, state, LiftReports(()), step)

    def _complete(
        self, batch: MicroBatch, state: ContinuousState, level: LiftReports, step: ProgressStep
    ) -> BatchOutcome[ContinuousState]:
        intake, timer = self._intake, batch.timer
        with timer("progress"):
            held, merged = intake.add(level, step, state.waiting, batch.batch_id, None)
            tasks = held.closed_by(step.state.punctuation)
            due = tuple(ref for task in tasks for _, refs in task.panes for ref in refs)
            still = held.retire(step.state.punctuation)
            waiting = intake.after(level, step, state.waiting, tasks, still)
        with timer("wlq"):
            front = self._front_of(state)
            due_rows, grouped = sum(ref.rows for ref in due), bool(self._plan.query.groups)
            workers = batch.steering.workers.wlq
            known = DueRows(due_rows, len(front), workers, grouped, min(workers, cores()), front.resident)
            placement = place_rows(known, batch.steering.costs.value)
            client = ShardClient(batch.rows.sparkSession, intake.partials, batch.batch_id)
            threads = ShardThreads()
            plans: dict[Place, Callable[[int], ShardPlan]] = {"threads": threads.plan, "spark": client.plan}
            in_shards = plans.get(placement.value.where)
            shard_plan = UNSHARDED if in_shards is None else in_shards(placement.value.runs)
            updates = self._step(front, due, still, shard_plan)
            front_partials, written = self._compacted((*state.front_partials, *due), front, batch.batch_id)
        with timer("sink"):
            rejected = intake.rejected(level, step, state.waiting)
            ahead, fresh = intake.ahead(batch, step, state.waiting)
        current = front.current() if updates.num_rows else state.current
        after = ContinuousState(replace(waiting, ahead=ahead), front_partials, current)
        self._cached = after, front
        answers = BatchRows(self._update_schema, row_count=updates.num_rows, tables=(updates,))
        measured = BatchMeasurements(
            tasks=level.work,
            merge_seconds=timer.seconds["wlq"],
            interval=batch.interval,
            exchanged=batch.steering.routing is not None,
            runs=tuple(RunWork(1, busy) for busy in threads.busy or client.busy),
            lift_seconds=timer.seconds.get("plq", 0.0),
            due=known,
            where=placement.value.where,
            lifted=batch.steering.lift.value,
        )
        metrics = batch_metrics(self._plan, batch, after.waiting, level, step, placement, answers, measured)
        return BatchOutcome(
            state=after,
            answers=answers,
            rejected=rejected,
            written=merged.union(
                written, client.written, (ref.file for ref in chain((pane.ref for pane in level.panes), fresh))
            ),
            rejected_files=frozenset(ref.file for ref in level.rejected_rows),
            fingerprint=level.fingerprint,
            metrics=replace(metrics, front=_counts(updates, front, current), answers=len(tasks)),
            measured=measured,
            current=self._front_for_sink(current, changed=bool(updates.num_rows)),
        )

    def _front_of(self, state: ContinuousState) -> RowFront:
        """Return the front of `state`: the cached one if it belongs to `state`, or else one built from its partials."""
        cached, self._cached = self._cached, None  # the caller changes the front
        if cached is not None and cached[0] is state:
            return cached[1]
        read = PartialReader(self._intake.partials)
        return RowFront.of(self._plan.query, self._intake.schema, map(read, state.front_partials), state.clock)

    def _step(
        self, front: RowFront, due: tuple[PartialReference, ...], still: OpenPanes[PartialReference], plan: ShardPlan
    ) -> pa.Table:
        if still.begin is None:
            return self._update_schema.empty_table()
        read = PartialReader(self._intake.partials)
        rows = pa.concat_tables([self._intake.schema.empty_table(), *map(read, due)])
        return front.step(rows, still.begin, plan)

    def _compacted(
        self, refs: tuple[PartialReference, ...], front: RowFront, batch_id: int
    ) -> tuple[tuple[PartialReference, ...], frozenset[str]]:
        """Return partials from which the front can be rebuilt, and the names of the files written for that."""
        rows = sum(ref.rows for ref in refs)
        if len(refs) <= _REFERENCES and rows <= 2 * len(front) + _SPARE:
            return refs, frozenset()
        name = attempt_name(batch_id, STORED)
        return tuple(partials.write(self._intake.partials, name, [front.stored()])), frozenset([name])

    def _front_for_sink(self, current: pa.Table, *, changed: bool) -> BatchRows | None:
        """Return the current front for its sink if it has changed or was not delivered since the driver started."""
        if self._delivered and not changed:
            return None
        self._delivered = True
        return BatchRows(self._intake.schema, row_count=current.num_rows, tables=(current,))


def _counts(updates: pa.Table, front: RowFront, current: pa.Table) -> dict[str, int]:
    adds = pc.sum(pc.equal(updates.column(ACTION), "ADD")).as_py() or 0
    return {
        "adds": adds,
        "dels": updates.num_rows - adds,
        "rows": current.num_rows,
        "stored": len(front),
    }
