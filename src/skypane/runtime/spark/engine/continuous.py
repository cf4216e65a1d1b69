"""The program of a continuous skyline (paper 4): what it makes of one micro-batch.

lift      rows become partials of open panes: those that can ever be on the front     intake.py
advance   the punctuation closes panes; the clock is the start of the first open one  intake.py
place     where they are compared: in the driver, or by shards of the front on workers         control/placement.py
step      the front takes the rows of closed panes, and tells the updates before the clock   sharding.py
remember  the rows that it was made of, as references to partials

The front lies in the driver, and is a cache: what it was made of makes it again. All that is remembered is partials of
closed panes, which are there already; when they hold much that nothing needs any more, what is stored is written anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.measured import Measured, RunWork
from skypane.control.placement import DueRows, FrontPlacement
from skypane.operators.advance import Advance, drained
from skypane.operators.continuous import RowFront
from skypane.operators.continuous.fronts import NOBODY, Asking
from skypane.operators.continuous.rows import ACTION
from skypane.operators.open_panes import OpenPanes
from skypane.plan import ContinuousPlan
from skypane.progress.policy import ProgressState
from skypane.runtime.spark.engine import partials
from skypane.runtime.spark.engine.intake import Intake
from skypane.runtime.spark.engine.partials import PartialReader, PartialRef, attempt_name
from skypane.runtime.spark.engine.plq import PaneLevel
from skypane.runtime.spark.engine.program import Batch, Outcome
from skypane.runtime.spark.engine.sharding import Shards
from skypane.runtime.spark.engine.state import State
from skypane.runtime.spark.engine.telemetry import batch_metrics
from skypane.runtime.spark.sinks.answers import Answers
from skypane.types import CheckpointError, Micros

STORED: Final = 99_998
"""Task number, in a file's name, of the rows that the driver writes anew."""

_SPARE: Final = 50_000
_REFERENCES: Final = 64
"""Rows and references beyond those needed from which what is stored is written anew."""


@dataclass(frozen=True, slots=True)
class ContinuousState:
    """What waits, and what the front is made of.

    waiting   progress, and the rows of open panes
    told      partials whose rows the front has taken: all that are stored, and others that came before
    current   the rows on the front
    """

    waiting: State
    told: tuple[PartialRef, ...]
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
        """Updates before are told; None: none is."""
        return self.waiting.open.begin

    @property
    def files(self) -> frozenset[str]:
        """The files with rows that wait, that are held, or that are stored."""
        return self.waiting.files | {ref.file for ref in self.told}

    def snapshot(self) -> dict[str, Any]:
        """Return the state without its progress as a JSON value."""
        return self.waiting.snapshot() | {"told": [ref.to_json() for ref in self.told]}


class ContinuousProgram:
    """Lifts rows into panes, and lets the front take those that progress closes; `update_schema` is that of what it tells."""

    def __init__(
        self, plan: ContinuousPlan, intake: Intake, update_schema: pa.Schema, costs: Costs = DEFAULT_COSTS
    ) -> None:
        self._placement = FrontPlacement(costs)
        self._plan = plan
        self._intake = intake
        self._update_schema = update_schema
        #: the front after the last batch, and the state that it belongs to
        self._known: tuple[ContinuousState, RowFront] | None = None
        #: whether a sink of the current front has been told since the start
        self._shown = False

    def init(self) -> ContinuousState:
        return ContinuousState(State.initial(self._plan), (), self._intake.schema.empty_table())

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> ContinuousState:
        try:
            told = tuple(map(PartialRef.from_json, operator["told"]))
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"the front in the checkpoint cannot be read: {error!r}") from error
        state = ContinuousState(State.restored(self._plan, progress, operator), told, self._intake.schema.empty_table())
        front = self._front_of(state)
        state = replace(state, current=front.current())
        self._known = state, front
        return state

    def run(self, batch: Batch, state: ContinuousState) -> Outcome[ContinuousState]:
        """Process a batch."""
        return self._complete(batch, state, *self._intake.lift(batch, state.waiting))

    def drain(self, batch: Batch, state: ContinuousState) -> Outcome[ContinuousState]:
        """Tell all updates up to the end of the last pane that holds a row; the front stays as it is then."""
        step = drained(self._plan.progress, state.progress, state.waiting.open)
        return self._complete(batch, state, PaneLevel(()), step)

    def _complete(
        self, batch: Batch, state: ContinuousState, level: PaneLevel, step: Advance
    ) -> Outcome[ContinuousState]:
        intake, timer = self._intake, batch.timer
        with timer("progress"):
            held, merged = intake.add(level, step, state.waiting, batch.batch_id, None)
            tasks = held.closed_by(step.state.punctuation)
            due = tuple(ref for task in tasks for _, refs in task.panes for ref in refs)
            still = held.retire(step.state.punctuation)
            waiting = intake.after(level, step, state.waiting, tasks, still)
        with timer("wlq"):
            front = self._front_of(state)
            coming, grouped = sum(ref.rows for ref in due), bool(self._plan.query.groups)
            known = DueRows(coming, len(front), batch.steering.workers.wlq, grouped)
            _, placement = self._placement.decide(self._placement.init(), known)
            shards = Shards(batch.rows.sparkSession, intake.partials, batch.batch_id)
            asking = shards.asking(placement.value.runs) if placement.value.where == "spark" else NOBODY
            updates = self._step(front, due, still, asking)
            told, written = self._remembered((*state.told, *due), front, batch.batch_id)
        with timer("sink"):
            rejected = intake.rejected(level, step, state.waiting)
            ahead, fresh = intake.ahead(batch, step, state.waiting)
        current = front.current() if updates.num_rows else state.current
        after = ContinuousState(replace(waiting, ahead=ahead), told, current)
        self._known = after, front
        answers = Answers(self._update_schema, row_count=updates.num_rows, tables=(updates,))
        measured = Measured(
            tasks=level.work,
            merge_seconds=timer.seconds["wlq"],
            interval=batch.interval,
            exchanged=batch.steering.routing is not None,
            runs=tuple(RunWork(1, busy) for busy in shards.busy),
        )
        metrics = batch_metrics(self._plan, batch, after.waiting, level, step, placement, answers, measured)
        return Outcome(
            state=after,
            answers=answers,
            rejected=rejected,
            written=merged.union(
                written, shards.written, (ref.file for ref in chain((pane.ref for pane in level.panes), fresh))
            ),
            rejected_files=frozenset(ref.file for ref in level.rejected_rows),
            fingerprint=level.fingerprint,
            metrics=replace(metrics, front=_counts(updates, front, current)),
            measured=measured,
            current=self._shown_anew(current, changed=bool(updates.num_rows)),
        )

    def _front_of(self, state: ContinuousState) -> RowFront:
        """Return the front as it is in `state`; made again, unless it is the one that is known."""
        known, self._known = self._known, None  # the caller will change it
        if known is not None and known[0] is state:
            return known[1]
        read = PartialReader(self._intake.partials)
        return RowFront.of(self._plan.query, self._intake.schema, map(read, state.told), state.clock)

    def _step(
        self, front: RowFront, due: tuple[PartialRef, ...], still: OpenPanes[PartialRef], asking: Asking
    ) -> pa.Table:
        if still.begin is None:
            return self._update_schema.empty_table()
        read = PartialReader(self._intake.partials)
        rows = pa.concat_tables([self._intake.schema.empty_table(), *map(read, due)])
        return front.step(rows, still.begin, asking)

    def _remembered(
        self, told: tuple[PartialRef, ...], front: RowFront, batch_id: int
    ) -> tuple[tuple[PartialRef, ...], frozenset[str]]:
        """Return partials from which the front can be made again, and the names of the files written for that."""
        rows = sum(ref.rows for ref in told)
        if len(told) <= _REFERENCES and rows <= 2 * len(front) + _SPARE:
            return told, frozenset()
        name = attempt_name(batch_id, STORED)
        refs = partials.write(self._intake.partials, name, [front.stored()])
        return tuple(refs), frozenset([name])

    def _shown_anew(self, current: pa.Table, *, changed: bool) -> Answers | None:
        """Return the current front for its sink, if it has changed, or has not been told since the start."""
        if self._shown and not changed:
            return None
        self._shown = True
        return Answers(self._intake.schema, row_count=current.num_rows, tables=(current,))


def _counts(updates: pa.Table, front: RowFront, current: pa.Table) -> dict[str, int]:
    adds = pc.sum(pc.equal(updates.column(ACTION), "ADD")).as_py() or 0
    return {
        "adds": adds,
        "dels": updates.num_rows - adds,
        "rows": current.num_rows,
        "stored": len(front),
    }
