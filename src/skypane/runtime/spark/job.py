"""A streaming job, ready to start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from skypane import notebook
from skypane.control.parallelism import Workers
from skypane.control.worker_options import WorkerOptions
from skypane.metrics import BatchMetrics
from skypane.operators.changes.comparison import QueryChange
from skypane.operators.entry.raw_text import own_columns
from skypane.operators.entry.shared_rejects import QUERIES
from skypane.plan import Plan
from skypane.runtime.spark.amend import in_words
from skypane.runtime.spark.batch_listeners import BatchListeners
from skypane.runtime.spark.classic_host import ClassicHost
from skypane.runtime.spark.connect.connect_host import ConnectHost
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import late_rows
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.query_changes import Begin, check_begin
from skypane.runtime.spark.engine.sent_rows import sent
from skypane.runtime.spark.engine_host import EngineHost, JobStart
from skypane.runtime.spark.error_causes import room_in_words
from skypane.runtime.spark.handle import StreamHandle
from skypane.runtime.spark.machine.answering import spark_there
from skypane.runtime.spark.machine.session import parallelism
from skypane.runtime.spark.machine.session_kind import over_connect
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.runtime.spark.spark_schema import pruned, spark_schema
from skypane.runtime.spark.triggers import pace_of, paced, trigger_of
from skypane.runtime.spark.unused_watermarks import warn_of_unused_watermarks
from skypane.shared_plan import SharedPlan
from skypane.types import ConfigError


@dataclass(frozen=True)
class Job:
    """A continuous query on a streaming DataFrame; nothing runs before start().

    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best"
    ... )
    >>> job  # what it will do
    <skypane job, not started: query: skyline of price MIN; windows: 1 hour of ts, every 1 hour; progress: AqKSlack(...
    >>> bool(job.changes())  # whether it differs from what the checkpoint holds
    False
    """

    rows: DataFrame
    settings: JobSettings
    workers: Workers
    #: the rows with the columns that nobody reads, too
    whole: DataFrame

    @classmethod
    def of(
        cls,
        rows: DataFrame,
        schema: pa.Schema,
        plan: Plan | SharedPlan,
        checkpoint: str | os.PathLike[str],
        sinks: Sinks | SharedSinks,
        workers: WorkerOptions,
    ) -> Self:
        """Return the job of a plan over `rows` of Arrow schema `schema`; raise ConfigError if it could not run."""
        whole, columns, schema = rows, schema, own_columns(schema)
        plan.validate(schema)
        warn_of_unused_watermarks(rows)
        added = late_rows.added(columns)
        if sinks.late is None:  # no sink receives whole rows, so columns that the plan does not read are dropped
            rows, schema = pruned(rows, columns, plan.reads(schema))
        else:
            _check_free(schema, (*added.names, QUERIES) if isinstance(plan, SharedPlan) else added.names)
        received = sent(plan, schema, added)
        for one in received.values():
            spark_schema(one)  # raises for a type that Spark lacks: a sink may need a DataFrame of the answers
        sinks.check(received)
        start, elastic = workers.begin(parallelism(rows.sparkSession))
        host = host_of(rows.sparkSession)
        settings = JobSettings(
            plan=plan,
            schema=schema,
            # Absolute, because Java resolves a relative path against the folder in which it was started.
            checkpoint=DocumentStore.at(checkpoint, "checkpoint").root,
            sinks=sinks,
            splitting=workers.splitting_policy(),
            costs=host.costs(),
            elastic=elastic,
            limits=workers.plq_workers is not None,
            follows=workers.executors_follow,
            columns=columns,
        )
        host.check(settings)
        return cls(rows, settings, start, whole)

    def __repr__(self) -> str:
        """Return the job in one line: its query, its windows and its sinks."""
        summary = "; ".join(f"{name}: {value}" for name, value in self._summary())
        return f"<skypane job, not started: {summary}>"

    def _repr_html_(self) -> str:
        return notebook.table("skypane job, not started", self._summary())

    def _summary(self) -> list[tuple[str, str]]:
        plan, sinks = self.settings.plan, self.settings.sinks
        return [
            *plan.in_words,
            ("progress", repr(plan.progress)),
            *((role, repr(sink)) for role, sink in sinks.by_role.items() if role.startswith("output")),
            ("late rows", self._late_rows),
            ("checkpoint", self.settings.checkpoint),
        ]

    @property
    def _late_rows(self) -> str:
        rule, late = self.settings.plan.amend, self.settings.sinks.late
        then = "counted" if late is None else repr(late)
        return then if rule is None else f"{in_words(rule)}, then {then}"

    def changes(self, begin: Begin | None = None) -> QueryChange:
        """Return how the query differs from that of its checkpoint, and what a start would make of it; write nothing.

        begin     as of start()

        Three tuples of sentences: `kept`, differences that hold from the next window on; `begins`, those that begin at
        a stated window; and `refused`, those with which start() raises CheckpointError. All are empty for the same
        query, and for a new checkpoint. With several queries, each sentence begins with the name of its query, and
        `queries` has the change of each. A driver that runs on the checkpoint is not disturbed.
        Raises CheckpointError if the definition or the newest manifest is damaged.
        """
        check_begin(begin)
        return self._host.changes(EngineDescription(self.settings, self.workers, begin=begin))

    def start(
        self,
        *,
        on_batch: Callable[[BatchMetrics], None] | None = None,
        trigger: str | None = None,
        processingTime: str | None = None,
        availableNow: bool | None = None,
        name: str | None = None,
        begin: Begin | None = None,
    ) -> StreamHandle:
        """Start the query, or resume it from its checkpoint; changes() shows what has changed since then.

        on_batch        called with the metrics of every committed batch, including drains
        trigger         "auto", the default, starts a batch when it can complete a window, and at once if rows wait
                        (control/pace.py); an interval such as "5 seconds", with "0 seconds" for each batch as soon as the
                        one before is done; "available now" processes the available data and ends
        processingTime  the interval, as PySpark's trigger(processingTime="5 seconds") spells it
        availableNow    True is trigger="available now", as PySpark's trigger(availableNow=True) spells it
        name            name of the query in Spark
        begin           "at_offsets": if the query of the checkpoint is another one, from whose state this one cannot
                        continue, begin where that one has stopped reading. If that one was drained, the first window
                        begins where its last one has ended, or at the next slide; rows before it are late. Else it is
                        the first one that holds no row read so far, and the earlier query still answers its windows
                        that begin before it. None: such a query is refused

        Raises CheckpointError if the checkpoint belongs to another query, ConfigError if the trigger cannot be read or
        is given twice, and SkypaneError if Spark cannot write to the checkpoint, or a disk is full.
        """
        check_begin(begin)
        when = trigger_of(trigger, processingTime, availableNow)
        # Java may end during the first batch, before this returns.
        with spark_there(self.rows.sparkSession), room_in_words(self.settings.checkpoint):
            description = EngineDescription(self.settings, self.workers, pace_of(when), begin, paced(when))
            listeners = BatchListeners() if on_batch is None else BatchListeners(on_batch)
            return self._host.start(JobStart(self.rows, self.whole, description, listeners, when, name))

    def readmit(self, reason: str, repair: Callable[[DataFrame], DataFrame] | None = None) -> BatchMetrics | None:
        """Process the rows that were rejected for `reason` once more, without a start of the query.

        As StreamHandle.readmit(); a driver that runs the query elsewhere is fenced.
        """
        with spark_there(self.rows.sparkSession):
            return self._host.readmit(EngineDescription(self.settings, self.workers), reason, repair)

    @property
    def _host(self) -> EngineHost:
        return host_of(self.rows.sparkSession)


def host_of(spark: SparkSession) -> EngineHost:
    """Return the place where the engines of a session's jobs run; a session without Java brings its own."""
    own: EngineHost | None = getattr(spark, "engine_host", None)
    return own or (ConnectHost(spark) if over_connect(spark) else ClassicHost(spark))


def _check_free(schema: pa.Schema, added: Iterable[str]) -> None:
    """Raise ConfigError if rows have a column of a name that late rows add."""
    for name in added:
        if name in schema.names:
            raise ConfigError(f"late rows get a column {name!r}: rename yours")
