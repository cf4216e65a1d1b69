"""The interface between the engine's shell and its programs: a program turns a batch and a state into an outcome.

The shell handles batches, errors, sinks and the ledger; a program handles rows and answers. A program's state is a
value, so the shell keeps the state before a batch until the batch is committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import DataFrame

from skypane.control.measurements import BatchMeasurements
from skypane.metrics import BatchMetrics
from skypane.progress.progress_policy import ProgressState
from skypane.runtime.spark.engine.control_loop import BatchDecisions
from skypane.runtime.spark.engine.fingerprint import Fingerprint
from skypane.runtime.spark.engine.reading_order import OrderOfBatch
from skypane.runtime.spark.engine.timer import Timer
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.shared_sinks import output_of
from skypane.types import Micros


class ProgramState(Protocol):
    """The properties of every program's state; states are frozen values."""

    @property
    def progress(self) -> ProgressState: ...

    @property
    def drained(self) -> bool:
        """Whether nothing is left to answer."""
        ...

    @property
    def files(self) -> frozenset[str]:
        """Names of the partial files that the state needs."""
        ...

    @property
    def due(self) -> Micros | None:
        """The newest event time with which the next answer is due; None: not known, or any row may change an answer."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the state without its progress as a JSON value."""
        ...


S = TypeVar("S", bound=ProgramState)
S_run = TypeVar("S_run", bound=ProgramState)


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One micro-batch, with the decisions made for it before its rows move.

    interval        seconds from the start of the batch before to the start of this one; None for the first one
    arrived         when Spark began the batch, if the progress policy needs it
    waiting_since   event time since which rows wait at the inputs, if the progress policy needs it and the source knows it
    order           returns the order in which its rows were read, given their units; None: it is not known
    query           the name of the query that is answered, if there are several
    """

    batch_id: int
    rows: DataFrame
    steering: BatchDecisions
    timer: Timer
    interval: float | None
    arrived: Micros | None = None
    waiting_since: Micros | None = None
    order: OrderOfBatch | None = None
    query: str = ""


@dataclass(frozen=True, slots=True)
class BatchOutcome(Generic[S]):
    """The result of a batch, which takes effect when the shell commits it.

    answers         for the output; None if several queries share the stream
    by_query        for the outputs of these queries, by name
    rejected        for the late sink, if the job has one
    current         for the sink of the current front, if the job has one and the batch has changed the front
    written         names of the partial files that the batch wrote
    rejected_files  names of the files with rejected rows
    """

    state: S
    answers: BatchRows | None
    rejected: BatchRows | None
    written: frozenset[str]
    rejected_files: frozenset[str]
    fingerprint: Fingerprint
    metrics: BatchMetrics
    measured: BatchMeasurements
    current: BatchRows | None = None
    by_query: Mapping[str, BatchRows] = field(default_factory=dict)

    @property
    def by_role(self) -> dict[str, BatchRows]:
        """The rows for each sink, by the role of the sink in the job."""
        single = {"output": self.answers, "late": self.rejected, "front": self.current}
        answers = {output_of(name): rows for name, rows in self.by_query.items()}
        return answers | {role: rows for role, rows in single.items() if rows is not None}


class Program(Protocol[S_run]):
    """A continuous query, in the form that the shell runs."""

    def init(self) -> S_run:
        """Return the state before the first batch."""
        ...

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> S_run:
        """Return the state from its snapshots; raise CheckpointError if they cannot be read."""
        ...

    def run(self, batch: MicroBatch, state: S_run) -> BatchOutcome[S_run]:
        """Process a batch; equal rows and states give equal answers, regardless of the decisions about workers."""
        ...

    def drain(self, batch: MicroBatch, state: S_run) -> BatchOutcome[S_run]:
        """Answer what is still open as if the stream had ended; the batch has no rows."""
        ...
