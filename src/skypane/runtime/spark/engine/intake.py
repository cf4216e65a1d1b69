"""What every program does with the rows of a batch before it answers: lift them into panes, keep them, reject the rest.

lift      one job: rows -> partials in files, reports                          plq.py
advance   the policy sees what came and moves the punctuation                  operators/advance.py
add       partials join the open panes, scattered ones merged                  partials.py
count     every row is somewhere, and in one place                             operators/row_account.py
reject    what may not enter, with its reason, for the late sink               rejects.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from skypane.operators.advance import Advance, advance
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.plan import Plan
from skypane.runtime.spark.engine import partials, plq, rejects
from skypane.runtime.spark.engine.crossing import Crossing
from skypane.runtime.spark.engine.partials import PARTIALS, PartialReader, PartialRef, attempt_name
from skypane.runtime.spark.engine.plq import LiftStage, PaneLevel
from skypane.runtime.spark.engine.program import Batch
from skypane.runtime.spark.engine.rejects import AheadStage
from skypane.runtime.spark.engine.state import State
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.store import Store
from skypane.types import Micros

DRIVER_ROWS = 400_000
"""Rows that the driver merges for keeping, at most; more of them lie in partials that are large enough as they are."""
MERGED = 99_999
"""Task number, in a file's name, of the partials that the driver merged."""


@dataclass(frozen=True)
class Intake:
    """How the rows of a plan are taken in.

    schema          of the rows that come
    store           where partials are kept
    keep_rejected   whether there is a late sink
    crossing        sends rows to the workers
    """

    plan: Plan
    schema: pa.Schema
    store: Store
    keep_rejected: bool
    crossing: Crossing

    @property
    def partials(self) -> Store:
        return self.store.child(PARTIALS)

    def lift(self, batch: Batch, state: State) -> tuple[PaneLevel, Advance]:
        """Lift the batch's rows, and move progress."""
        gate = replace(self.plan.gate.after(state.progress.punctuation), keep=self.keep_rejected)
        stage = LiftStage(self.plan.query, gate, self.store, batch.batch_id)
        with batch.timer("plq"):
            level = plq.run(batch.rows, stage, self.crossing, batch.steering.routing, batch.steering.tasks)
        with batch.timer("progress"):
            step = advance(self.plan.progress, self.plan.windows, state.progress, level.counts, level.sources)
        return level, step

    def add(
        self, level: PaneLevel, step: Advance, state: State, batch_id: int, closed_by: Micros | None
    ) -> tuple[OpenPanes[PartialRef], frozenset[str]]:
        """Add the batch's partials to the open panes; merge the partials of panes that have many small ones.

        closed_by   the punctuation, if the panes that it closes are kept for later windows
        Returns the panes, and the names of the files of merged partials.
        """
        panes = state.open.without(step.given_up).add((pane.count.pane, pane.ref) for pane in level.panes)
        scattered = panes.scattered(closed_by)
        if not scattered or sum(ref.rows for pane in scattered for ref in panes.panes[pane]) > DRIVER_ROWS:
            return panes, frozenset()
        read = PartialReader(self.partials)
        merged = [self.plan.query.combine([read(ref) for ref in panes.panes[pane]]) for pane in scattered]
        refs = partials.write(self.partials, attempt_name(batch_id, MERGED), merged)
        return panes.replace(zip(scattered, refs, strict=True)), frozenset(ref.file for ref in refs)

    def after(
        self,
        level: PaneLevel,
        step: Advance,
        state: State,
        due: Iterable[WindowTask[PartialRef]],
        still: OpenPanes[PartialRef],
    ) -> State:
        """Return the state after a batch that answers the windows `due` and leaves the panes `still` open, but for `ahead`.

        Raises SkypaneError if a row is lost by it, or counted twice.
        """
        rejection = level.rejection.merge(step.rejection)
        entered = (pane.count for pane in level.panes)
        account = state.account.after(level.fingerprint.rows, entered, rejection, step.given_up, due)
        after = State(step.state, still, account=account)
        after.totals.check()
        return after

    def ahead(self, batch: Batch, step: Advance, state: State) -> tuple[tuple[PartialRef, ...], tuple[PartialRef, ...]]:
        """Return references to the held rows that are kept for the late sink: all of them, and those of this batch alone."""
        fresh: tuple[PartialRef, ...] = ()
        if not self.keep_rejected:
            return (), fresh
        if step.held:
            gate = replace(self.plan.gate, limit=step.limit, keep=True)
            fresh = rejects.write_ahead(batch.rows, AheadStage(gate, self.partials, batch.batch_id), self.crossing)
        still = () if step.given_up or not step.state.held.panes else state.ahead
        return (*still, *fresh), fresh

    def rejected(self, level: PaneLevel, step: Advance, state: State) -> Answers | None:
        """Return the rows that are rejected with a batch, for the late sink."""
        if not self.keep_rejected:
            return None
        future = rejects.given_up(self.plan.gate, self.partials, state.ahead, step.given_up) if step.given_up else ()
        return rejects.gather(self.schema, level, self.store, future)
