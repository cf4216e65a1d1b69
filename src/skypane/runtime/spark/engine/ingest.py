"""The steps that all programs share: rows of a batch are lifted into panes and kept, or rejected.

lift      one job turns rows into partials in files, and reports               plq.py
advance   the policy receives the counts and moves the punctuation             operators/advance.py
add       partials join the open panes; scattered ones are merged              partials.py
count     every row is accounted for exactly once                              operators/row_account.py
reject    rejected rows go to the late sink with their reason                  late_rows.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from skypane.operators.advance import ProgressStep, Reading, advance, readmitted
from skypane.operators.changes.window_phases import left_of
from skypane.operators.entry.reject_reasons import FUTURE
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.plan import Plan
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import late_rows, partials, plq
from skypane.runtime.spark.engine.arrow_transfer import ArrowTransfer
from skypane.runtime.spark.engine.late_rows import FarAheadStage
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReader, PartialReference, attempt_name
from skypane.runtime.spark.engine.plq import LiftReports, LiftStage
from skypane.runtime.spark.engine.program import MicroBatch
from skypane.runtime.spark.engine.window_state import WindowState
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import Micros

DRIVER_ROWS = 400_000
"""Maximum rows that the driver merges into larger partials; with more rows, the partials are large enough already."""
MERGED = 99_999
"""Task number, in a file's name, of the partials that the driver merged."""


@dataclass(frozen=True)
class Ingest:
    """Intake of the rows of a plan.

    schema          schema of the rows
    store           folder of the partials
    added           columns that rejected rows get, for the late sink; None without one
    transfer        transfers rows to the workers
    """

    plan: Plan
    schema: pa.Schema
    store: DocumentStore
    added: pa.Schema | None
    transfer: ArrowTransfer

    @property
    def partials(self) -> DocumentStore:
        return self.store.child(PARTIALS)

    def lift(self, batch: MicroBatch, state: WindowState) -> tuple[LiftReports, ProgressStep]:
        """Lift the batch's rows, and advance the punctuation."""
        gate = replace(state.gate(self.plan), keep=self.added is not None)
        stage = LiftStage(self.plan.query, gate, self.store, batch.batch_id)
        with batch.timer("plq"):
            steering = batch.steering
            level = plq.run(
                batch.rows, stage, self.transfer, steering.routing, steering.tasks, in_driver=steering.in_driver
            )
        return level, self.advance(batch, state, level)

    def advance(self, batch: MicroBatch, state: WindowState, level: LiftReports) -> ProgressStep:
        """Advance the punctuation by the rows of a batch."""
        order = batch.order
        with batch.timer("progress"):
            read = _unknown if order is None else partial(order.of, batch.query, level.units)
            reading = Reading(batch.arrived, batch.waiting_since, read)
            known = (level.counts, level.sources, level.shown)
            step = advance(self.plan.progress, self.plan.windows, state.progress, *known, reading)
            if order is not None and step.by_order:
                order.note(batch.query, step.order)
        return step

    def of_own_rows(self, step: ProgressStep, state: WindowState) -> ProgressStep:
        """Return a step that rejects only rows of this plan: a policy also holds and abandons rows of another query."""
        if not step.abandoned or (self.plan.first is None and self.plan.stop is None):
            return step
        rows = sum(state.account.waiting.get(pane, 0) for pane in step.abandoned)
        return replace(step, rejection=Rejection({FUTURE: rows} if rows else {}))

    def readmit(self, batch: MicroBatch, state: WindowState) -> tuple[LiftReports, ProgressStep]:
        """Lift rows that come a second time; the punctuation does not move, and no row may be beyond the newest."""
        # Clocks were judged the first time: the rows have their corrected or repaired times.
        gate = replace(state.gate(self.plan), keep=self.added is not None, limit=state.progress.newest, clocks=None)
        stage = LiftStage(self.plan.query, gate, self.store, batch.batch_id)
        with batch.timer("plq"):
            level = plq.run(batch.rows, stage, self.transfer, None)
        return level, readmitted(state.progress)

    def add(
        self, level: LiftReports, step: ProgressStep, state: WindowState, batch_id: int, closed_by: Micros | None
    ) -> tuple[OpenPanes[PartialReference], frozenset[str]]:
        """Add the batch's partials to the open panes; merge the partials of panes that have many small ones.

        closed_by   the punctuation, if the panes that it closes are kept for later windows

        Returns the panes, and the names of the files of merged partials.
        """
        panes = state.open.without(step.abandoned)
        if state.closed is not None:  # late rows re-enter their panes
            panes = panes.add(state.closed.partials_of(pane.count.pane for pane in level.panes))
        panes = panes.add((pane.count.pane, pane.ref) for pane in level.panes)
        scattered = panes.scattered(closed_by)
        if not scattered or sum(ref.rows for pane in scattered for ref in panes.panes[pane]) > DRIVER_ROWS:
            return panes, frozenset()
        read = PartialReader(self.partials)
        merged = [self.plan.query.combine([read(ref) for ref in panes.panes[pane]]) for pane in scattered]
        refs = partials.write(self.partials, attempt_name(batch_id, MERGED), merged)
        return panes.replace(zip(scattered, refs, strict=True)), frozenset(ref.file for ref in refs)

    def after(
        self,
        level: LiftReports,
        step: ProgressStep,
        state: WindowState,
        due: Iterable[WindowTask[PartialReference]],
        still: OpenPanes[PartialReference],
    ) -> WindowState:
        """Return the state, still without `ahead`, after a batch that answers `due` and leaves the panes `still` open.

        Raises SkypaneError if the batch loses a row or counts it twice.
        """
        rejection = level.rejection.merge(step.rejection)
        entered = (pane.count for pane in level.panes)
        read = level.fingerprint.rows - rejection.rows_elsewhere
        account = state.account.after(read, entered, rejection, step.abandoned, due)
        phases = left_of(state.phases, still.next_window)
        after = replace(state, progress=step.state, open=still, ahead=(), account=account, phases=phases)
        after.totals.check()
        return after

    def ahead(
        self, batch: MicroBatch, step: ProgressStep, state: WindowState
    ) -> tuple[tuple[PartialReference, ...], tuple[PartialReference, ...]]:
        """Return references to the held rows kept for the late sink: first all of them, then those of this batch.

        Without a late sink those of an earlier start are kept until they are no longer held: it may have one again.
        """
        fresh: tuple[PartialReference, ...] = ()
        if self.added is not None and step.held:
            limit = step.decision.value.future.limit
            gate = replace(self.plan.rules_after(state.progress), limit=limit, keep=True)
            fresh = late_rows.write_ahead(batch.rows, FarAheadStage(gate, self.partials, batch.batch_id), self.transfer)
        still = () if step.abandoned or not step.state.held.panes else state.ahead
        return (*still, *fresh), fresh

    def rejected(self, level: LiftReports, step: ProgressStep, state: WindowState) -> BatchRows | None:
        """Return the rows that a batch rejects, for the late sink; None without one."""
        if self.added is None:
            return None
        future = (
            late_rows.abandoned(self.plan.gate, self.partials, state.ahead, step.abandoned) if step.abandoned else ()
        )
        return late_rows.gather(late_rows.schema_of(self.schema, self.added), level, self.store, future)


def _unknown() -> None:
    """Return no order: that of the rows of the batch is not known."""
