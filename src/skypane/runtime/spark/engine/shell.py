"""The streaming engine's shell: it takes a micro-batch of any query from Spark's call to the commit.

See design, "The way of one micro-batch". The steps of a batch:

    decide    the control policies decide for the batch                            control_loop.py
    follow    executors are requested, or released, if they follow the workers   following.py
    run       the program: rows and state -> answers, rejected rows, new state     window_program.py, front_program.py
    deliver   the sinks receive answers and rejected rows, by batch id             sinks
    observe   the control policies receive the measurements of the batch           control_loop.py
    pace      without a trigger of its own, the query pauses after the batch       pacing.py
    diagnose  the causes of losses join the metrics, and are logged after the commit       diagnosing.py
    commit    one manifest is written atomically; then unneeded files are removed  ledger.py
    publish   sinks that roll receive the committed rows of several batches        outbox.py

A kill at any moment leaves either the manifest before the batch or the one after it. Answers depend only on the rows
and the manifest, so a replayed batch gives the same answers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from threading import RLock
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane.addresses import without_secrets
from skypane.control.pace import Pace
from skypane.control.parallelism import Workers
from skypane.metrics import BatchMetrics, InputReport
from skypane.naming import backticked
from skypane.operators.changes.comparison import QueryChange
from skypane.runtime.interrupts import interrupted_afterwards
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import fingerprint, late_rows, spark_files
from skypane.runtime.spark.engine import readmission as readmissions
from skypane.runtime.spark.engine.answer_latency import AnswerLatency
from skypane.runtime.spark.engine.batch_metrics import plain
from skypane.runtime.spark.engine.committed_state import CommittedState
from skypane.runtime.spark.engine.control_loop import ControlLoop, ControlState
from skypane.runtime.spark.engine.diagnosing import Diagnosing
from skypane.runtime.spark.engine.fencing import check_start, fence, next_after, open_sinks, tidy
from skypane.runtime.spark.engine.following import FollowingExecutors, executors_there
from skypane.runtime.spark.engine.front_program import ContinuousState
from skypane.runtime.spark.engine.handover import HandoverState
from skypane.runtime.spark.engine.handover_program import HandoverProgram
from skypane.runtime.spark.engine.job_descriptions import described_jobs
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger, PendingReadmission
from skypane.runtime.spark.engine.outbox import Outbox, Waiting, files_of
from skypane.runtime.spark.engine.pacing import Pacing
from skypane.runtime.spark.engine.partials import PARTIALS
from skypane.runtime.spark.engine.plq import REJECTED
from skypane.runtime.spark.engine.program import BatchOutcome, MicroBatch
from skypane.runtime.spark.engine.programs import columns_of_start, program_of, taking_over
from skypane.runtime.spark.engine.query_changes import Begin, beginning, changes_of, rewritten
from skypane.runtime.spark.engine.reading_order import UNIT, OrderOfBatch, ReadingOrders
from skypane.runtime.spark.engine.shared_program import SharedState
from skypane.runtime.spark.engine.timer import Timer
from skypane.runtime.spark.engine.window_program import WindowedProgram
from skypane.runtime.spark.engine.window_state import WindowState, files_in
from skypane.runtime.spark.machine.executor_follower import ExecutorFollower
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.spark_schema import spark_schema
from skypane.types import CheckpointError, Micros, SkypaneError
from skypane.wording import by_name, counted

log = logging.getLogger(__name__)

ANSWERS = "answers"


class Engine:
    """The function that foreachBatch calls; it holds the committed state."""

    def __init__(
        self,
        settings: JobSettings,
        workers: Workers,
        on_batch: Callable[[BatchMetrics], None] | None = None,
        inputs: Callable[[], InputReport] = InputReport,
        pace: float = 0.0,
        begin: Begin | None = None,
        executors: ExecutorFollower | None = None,
        paced: Pace | None = None,
    ) -> None:
        """Take over the checkpoint, and restore the committed state.

        on_batch   receives the metrics of each committed batch; it raises nothing (batch_listeners.py)
        inputs     returns the current report of a source of many inputs
        pace       seconds that the trigger leaves between batches; 0 without a trigger, infinite if no further rows come
        begin      where the query begins if it cannot continue from the state of the checkpoint
        executors  brings executors to the number that a batch needs; None: they are left to Spark
        paced      decides the pauses between batches; None: Spark's trigger does
        """
        self._pace = pace
        self._workers = workers
        self._pacing = Pacing(paced)
        self._on_batch = on_batch
        self._inputs = inputs
        self._executors = FollowingExecutors(executors)
        self._store = DocumentStore.at(settings.checkpoint).child("skypane")
        self._partials, self._rejected, self._answers = (
            self._store.child(name) for name in (PARTIALS, REJECTED, ANSWERS)
        )
        #: held by who changes the committed state: a batch, or the clock of the rolling sinks
        self._turn = RLock()
        self.ledger = Ledger(self._store)
        #: the settings of the job, and where its query begins, while an earlier definition finishes a batch
        self._later: tuple[JobSettings, Begin | None] | None = None
        change, definition = check_start(self.ledger, self._store, settings, begin)
        latest = self.ledger.latest()
        #: the columns that rows need, if an earlier query reads others than those of the job; None: those of the job
        self.columns = columns_of_start(settings, self._store, change, latest, lambda _: self._answers)
        begun = fence(self.ledger, self._store, settings, change, definition)
        if begun is None:
            self._take_up(settings, begin)
        else:
            log.info("batch %d was delivered by the job as it was before, which finishes it first", next_after(latest))
            self._later = (settings, begin)
            with self.ledger.ownership.in_charge():
                open_sinks(self.ledger, self._store, settings, begun)
            self._take_up(begun, None)
        #: the first batch of this driver
        self._first = self._committed.batch_id + 1
        #: the workers requested by scale() since the last batch began
        self._request: Workers | None = None
        self._began: float | None = None

    def _take_up(self, settings: JobSettings, begin: Begin | None) -> None:
        """Restore the committed state as that of the query of these settings, which runs from now on."""
        self._settings = settings
        self._control = ControlLoop.of(settings, self._workers)
        self._outbox = Outbox(settings.sinks.by_role, self._partials)
        self._program = program_of(settings, self._store, self._staged)
        ownership = self.ledger.ownership
        with ownership.in_charge():
            change = changes_of(self._store, self.ledger, settings.plan, settings.schema, begin, settings.rows)
            if change.refused:  # the earlier query has gone on since the change was checked
                raise CheckpointError(f"the checkpoint {self._store.root} cannot go on: {'; '.join(change.refused)}")
            latest = self.ledger.latest()
            self._diagnosing = Diagnosing(settings, None if latest is None else latest.metrics, self._pace)
            since = beginning(change, latest, settings.plan)
            both = None if since is None else taking_over(settings, self._store, since.operator, self._staged)
            self._program = both or self._program
            #: the columns of the rows that the program takes, with those that only late rows keep
            self._takes = tuple(settings.arriving.names) if both is None else both.columns
            self._committed = CommittedState.restored(self._program, self._control, since)
            last = {} if since is None else since.metrics
            self._latency = AnswerLatency(settings.checkpoint, settings.elastic, last)
            begun = self.ledger.readmission_begun
            needed = self._committed.files | (
                files_in(latest.operator) if change and latest is not None else frozenset()
            )
            needed |= frozenset() if begun is None else {begun.ref.file}
            operator = None if latest is None else latest.operator
            #: the files that the newest manifest names: until the first commit, a start of the earlier query needs them
            self._earlier = tidy(ownership, self._partials, needed, operator, (self._rejected, self._answers))
            #: the files that the change writes, which the first commit synchronises
            self._converted: frozenset[str] = frozenset()
            self._change_query(change)
        #: whether sinks may have received the rows that wait: they are delivered again before anything else happens
        self._published = bool(self._committed.outbox)
        self._orders = ReadingOrders(self.ledger, DocumentStore.at(settings.checkpoint))

    def _follow_up(self) -> None:
        """Let the query of the job take over, now that an earlier definition has finished its batch."""
        if self._later is not None:
            (settings, begin), self._later = self._later, None
            with self._turn, self.ledger.ownership.in_charge():
                open_sinks(self.ledger, self._store, settings, settings)
                self._take_up(settings, begin)

    @property
    def checkpoint(self) -> str:
        return self._settings.checkpoint

    @property
    def workers(self) -> Workers:
        """The workers that the next batch may use."""
        return self._request or self._committed.control.workers

    @property
    def pause(self) -> float:
        """Seconds for which the query is to pause from now on, after the last batch."""
        return self._pacing.left

    def history(self, last: int) -> list[dict[str, Any]]:
        """Return the metrics of the last batches as JSON values, oldest first."""
        return self.ledger.history(last)

    def front(self) -> pa.Table:
        """Return the front of a continuous skyline after the last committed batch."""
        state = self._committed.state
        if not isinstance(state, ContinuousState):
            raise SkypaneError(
                "this query answers windows and keeps no front: read its output, or use sp.continuous_skyline"
            )
        return state.current

    def scale(self, *, plq: int | None = None, wlq: int | None = None) -> None:
        """Request other numbers of workers from the next batch on; the ledger keeps them when that batch is committed.

        Raises ConfigError for invalid numbers, and for those out of the bounds of the elastic policy.
        """
        now = self.workers
        request = Workers(now.plq if plq is None else plq, now.wlq if wlq is None else wlq)
        self._control.scaled(self._committed.control, request)
        self._request = request

    @property
    def explanation(self) -> str:
        """The reason for the current numbers of workers, in one line."""
        return self._control.explained(self._committed.control)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Process one micro-batch of Spark; a batch that is already in the ledger is only read and compared."""
        with self._turn, self.ledger.ownership.in_charge():
            batch_id += self._committed.drains  # Spark does not count drains
            self.ledger.ownership.check()
            if batch_id == self._committed.batch_id:
                self._read_again(rows, batch_id)
                return
            self._check_next(batch_id)
            metrics = self._process(self._narrowed(rows), batch_id)
        self._notify(metrics)
        self.publish_due(rows.sparkSession)

    @property
    def has_begun(self) -> bool:
        """Whether Spark has begun a batch with rows that is not committed; the next start repeats it."""
        last = self._committed.batch_id - self._committed.drains
        return spark_files.has_begun_after(DocumentStore.at(self._settings.checkpoint), last)

    def drain(self, spark: SparkSession) -> BatchMetrics | None:
        """Answer the open windows in one more batch, if any are open; no batch of Spark may be running.

        If an earlier query still answers windows, its windows are answered in a batch before that.

        The ledger notes the drain before a sink receives it, so after a kill it is repeated before any other batch.
        """
        metrics = None
        with self._turn:
            while not self._committed.state.drained:
                self.ledger.ownership.check()
                self.ledger.begin_drain(self._committed.batch_id + 1)
                metrics = self.finish_drain(spark)
            self.publish(spark)
        return metrics

    def finish_drain(self, spark: SparkSession) -> BatchMetrics | None:
        """Run the drain that was begun but not committed; return its metrics, or None if there is no such drain.

        Before that, sinks receive the rows that wait for their file since an earlier start; after it, those of the drain.
        Ctrl-C comes when its batch is committed; a second one ends it at once, and the next start repeats it.
        """
        self.publish(spark)
        if not self.ledger.drain_begun:
            return None
        readmission = self.ledger.readmission_begun
        if readmission is None:
            rows = spark.createDataFrame([], spark_schema(self._settings.schema))
        else:
            rows = readmissions.again(spark, self._partials, readmission)
        with interrupted_afterwards():  # the main thread may run this batch, and with it kernels
            with self._turn, self.ledger.ownership.in_charge():
                metrics = self._process(rows, self._committed.batch_id + 1, drain=True, readmission=readmission)
            self._notify(metrics)
        self.publish(spark)
        return metrics

    def readmit(self, spark: SparkSession, reason: str, repair: readmissions.Repair | None) -> BatchMetrics | None:
        """Process the rows that were rejected for `reason` once more; no batch of Spark may be running.

        The ledger notes the rows before a sink receives anything, as for a drain, and their batch when it is committed.
        """
        self.publish(spark)  # rejected rows, too, are read from their files
        self.ledger.ownership.check()
        if isinstance(self._committed.state, HandoverState):
            raise SkypaneError(
                "rows cannot be readmitted while an earlier query still answers its last windows: wait until it has, or "
                "drain both"
            )
        through = self._committed.batch_id
        after = readmissions.readmitted_before(self._committed.state).get(reason, -1)
        folder = readmissions.folder_of(self._settings.sinks.late)
        settings = self._settings
        late = late_rows.schema_of(settings.schema, late_rows.added(settings.rows))
        rows = readmissions.rejected(folder, late, reason, after, through)
        fixed = readmissions.repaired(spark, rows, repair, settings.schema.names)
        with self.ledger.ownership.in_charge():
            self.ledger.begin_drain(through + 1, readmissions.kept(self._partials, fixed, reason, through))
        return self.finish_drain(spark)

    @property
    def waits(self) -> bool:
        """Whether committed rows wait for their file."""
        return bool(self._committed.outbox)

    def publish(self, spark: SparkSession) -> None:
        """Have sinks receive the rows that wait for their file, if there are any; safe from any thread."""
        with self._turn:
            if self.waits:
                with self.ledger.ownership.in_charge():
                    self._publish(spark)

    def publish_due(self, spark: SparkSession) -> None:
        """As publish(), if the rows have waited for long enough."""
        with self._turn:
            if self._outbox.is_due(self._committed.outbox):
                self.publish(spark)

    def _publish(self, spark: SparkSession) -> None:
        waiting, last = self._committed.outbox, self._committed.batch_id
        self.ledger.ownership.check()
        self._published = True
        for role, refs in waiting.items():
            rows = self._outbox.rows(refs)
            log.info("%s of the batches up to %d become a file of %s", counted(rows.row_count, "rows"), last, role)
            self._settings.sinks.by_role[role].write(spark, self._addressed(rows, last), last)
        self.ledger.empty_outbox()
        self._committed, self._published = replace(self._committed, outbox={}), False
        self._outbox.emptied()
        self.ledger.ownership.remove(self._partials, files_of(waiting))

    def _read_again(self, rows: DataFrame, batch_id: int) -> None:
        """Read the rows of a replayed batch, so that stateful operators before the engine commit their state of it.

        Raises CheckpointError unless the rows match the committed fingerprint: if Spark has lost its record of the
        batch, it fills the batch with new rows, which would be lost.
        """
        read, known = fingerprint.read(rows, self._settings.plan.time), self._committed.fingerprint
        if read != known:
            raise CheckpointError(
                f"batch {batch_id} is in the ledger with {known.rows} rows, and Spark replays it with {read.rows} "
                f"rows, or with other event times: Spark's record of it (offsets/{batch_id - self._committed.drains} "
                f"in the checkpoint) was lost, or the source or an operator before the query gives other rows each "
                f"time. Restore the whole checkpoint from a copy, or start with a new one"
            )
        log.info("batch %d is already in the ledger", batch_id)

    def _narrowed(self, rows: DataFrame) -> DataFrame:
        """Return rows with the columns that the program takes, if those of another definition were read, too."""
        if self.columns is None:
            return rows
        there = rows.columns
        names = [*self._takes, *(name for name in there if name == UNIT)]
        return rows if there == names else rows.select(*map(backticked, names))

    def _check_next(self, batch_id: int) -> None:
        """Raise CheckpointError unless `batch_id` is the next one; Spark numbers its batches without a gap."""
        before = self._committed
        if batch_id != before.batch_id + 1:
            raise CheckpointError(
                f"Spark's checkpoint continues with batch {batch_id - before.drains}, but the ledger in "
                f"{self._store.root} ends with batch {before.batch_id - before.drains}: one of them was removed or "
                f"restored without the other; start with a new checkpoint"
            )

    def _notify(self, metrics: BatchMetrics) -> None:
        log.info("%s; so far %s; checkpoint %s", metrics, by_name(metrics.account), without_secrets(self.checkpoint))
        self._latency.committed(metrics)
        self._diagnosing.committed(metrics)
        if self._on_batch is not None:
            self._on_batch(metrics)
        self._follow_up()

    def _process(
        self, rows: DataFrame, batch_id: int, *, drain: bool = False, readmission: PendingReadmission | None = None
    ) -> BatchMetrics:
        if self._published:
            self._publish(rows.sparkSession)
        with described_jobs(rows.sparkSession, batch_id) as entered:
            return self._committing(rows, batch_id, Timer(entered), drain=drain, readmission=readmission)

    def _committing(
        self, rows: DataFrame, batch_id: int, timer: Timer, *, drain: bool, readmission: PendingReadmission | None
    ) -> BatchMetrics:
        before = self._committed
        requested = self._requested(before.control)
        interval = self._interval(timer)
        control, steering = self._control.decide(requested, interval)
        followed = None if drain else self._executors.before(steering)
        arrived = None if drain else self._arrived(batch_id - before.drains)
        since = None if drain else self._waiting_since(batch_id - before.drains)
        order = None if drain else OrderOfBatch(self._orders, batch_id, batch_id - before.drains)
        batch = MicroBatch(batch_id, rows, steering, timer, interval, arrived, since, order)
        outcome = self._run(batch, before.state, readmission, drain=drain)
        with timer("sink"):
            waiting = self._deliver(rows, outcome, batch_id)
        report = self._inputs()
        with timer("commit"):
            # A drain is not a batch of Spark, and its duration is not measured for the control policies.
            seen = before.fingerprint if drain else outcome.fingerprint
            paced = None if drain else self._pacing.after(timer, outcome.metrics.rows, outcome.state, report)
            pause = 0.0 if paced is None else paced.value
            overrun = max(0.0, timer.stop()["total"] - max(self._pace, pause))
            measured = replace(
                outcome.measured, backlog=report.backlog, overrun=overrun, sized=report.sized, ahead=report.ahead
            )
            control = requested if drain else self._control.observe(control, measured)
            after = CommittedState(batch_id, outcome.state, control, seen, before.drains + drain, waiting)
            fresh = outcome.written | self._converted | files_of(waiting) - before.files
            if kept := sorted(fresh & after.files):
                self._partials.sync(*kept, "")
        # Timed before the manifest is written, which holds the times: the ledger and the listener get the same metrics.
        decisions = (*outcome.metrics.decisions, *report.decisions, *plain(followed, paced))
        metrics = replace(
            outcome.metrics,
            seconds=timer.stop(),
            inputs=report.inputs,
            decisions=decisions,
            executors=executors_there(followed),
            pause=pause,
        )
        metrics = self._latency.measured(metrics, None if drain else batch_id - before.drains)
        metrics = self._diagnosing.diagnosed(metrics, rows, before.state)
        self.ledger.commit(after.manifest(self._settings.plan.progress, self._control, metrics))
        self._committed = after
        self._executors.after(metrics)
        self._remove_unneeded(before, outcome)
        if readmission is not None:
            self.ledger.ownership.remove(self._partials, [readmission.ref.file])
        return metrics

    def _change_query(self, change: QueryChange) -> None:
        """Turn the committed state of an earlier query into that of this one; the next commit makes it permanent."""
        before = self._committed
        if not change or not isinstance(before.state, WindowState | SharedState):
            return
        state = rewritten(change, before.state, self._partials, before.batch_id + 1)
        self._converted, self._earlier = state.files - self._earlier, self._earlier - state.files
        self._committed = replace(before, state=state)

    def _run(
        self, batch: MicroBatch, state: Any, readmission: PendingReadmission | None, *, drain: bool
    ) -> BatchOutcome[Any]:
        if readmission is not None and isinstance(self._program, WindowedProgram | HandoverProgram):
            known = state.readmitting(readmission.reason, readmission.rows, readmission.through)
            return self._program.readmit(batch, known)
        return (self._program.drain if drain else self._program.run)(batch, state)

    def _requested(self, control: ControlState) -> ControlState:
        """Return the control state with the workers requested by scale(), if any."""
        request, self._request = self._request, None
        return control if request is None else self._control.scaled(control, request)

    def _interval(self, timer: Timer) -> float | None:
        before, self._began = self._began, timer.began
        return None if before is None else timer.began - before

    def _arrived(self, sparks_batch: int) -> Micros | None:
        if not self._settings.plan.progress.needs_arrival:
            return None
        return spark_files.began(DocumentStore.at(self._settings.checkpoint), sparks_batch)

    def _waiting_since(self, sparks_batch: int) -> Micros | None:
        if not self._settings.plan.progress.needs_backlog:
            return None
        store = DocumentStore.at(self._settings.checkpoint)
        return spark_files.waiting_since(store, sparks_batch, self._settings.plan.time)

    def _deliver(self, rows: DataFrame, outcome: BatchOutcome[Any], batch_id: int) -> Waiting:
        """Deliver the rows of a batch, and return those that wait for their file once it is committed."""
        self.ledger.ownership.check()
        sinks = self._settings.sinks.by_role
        later: dict[str, BatchRows] = {}
        for role, sent in outcome.by_role.items():
            if self._outbox.takes(role) and batch_id != self._first:
                later[role] = sent
            elif role in sinks:
                sinks[role].write(rows.sparkSession, self._addressed(sent, batch_id), batch_id)
        if not self._outbox.fits(later):
            self._publish(rows.sparkSession)
        return self._outbox.add(self._committed.outbox, later, batch_id)

    def _addressed(self, rows: BatchRows, batch_id: int) -> BatchRows:
        """Return rows with the driver that delivers them."""
        owner = self.ledger.ownership
        return replace(rows, driver=owner.driver, check=owner.check, first=batch_id <= self._first)

    def _staged(self, role: str) -> DocumentStore:
        """Return the folder to which workers write the answers for a sink."""
        if self._outbox.takes(role):
            return self._answers
        sink = self._settings.sinks.by_role.get(role)  # none of a query of several that the job no longer has
        return self._answers if sink is None else sink.stage(self.ledger.ownership.driver) or self._answers

    def _remove_unneeded(self, before: CommittedState, outcome: BatchOutcome[Any]) -> None:
        ownership = self.ledger.ownership
        unneeded = before.state.files | outcome.written | self._earlier
        self._earlier, self._converted = frozenset(), frozenset()
        ownership.remove(self._partials, unneeded - outcome.state.files)
        ownership.remove(self._rejected, outcome.rejected_files)
        for sent in outcome.by_role.values():
            if sent.store == self._answers:
                ownership.remove(self._answers, sent.files)
