"""The seam between the engine's shell and what it runs: a program turns a batch and a state into an outcome.

The shell knows batches, errors, sinks and the ledger; a program knows rows and answers. A program's state is a value:
the shell keeps the one before a batch until the batch is committed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pyspark.sql import DataFrame

from skypane.control.measured import Measured
from skypane.metrics import BatchMetrics
from skypane.progress.policy import ProgressState
from skypane.runtime.spark.engine.control import Steering
from skypane.runtime.spark.engine.fingerprint import Fingerprint
from skypane.runtime.spark.engine.timer import Timer
from skypane.runtime.spark.sinks.answers import Answers


class ProgramState(Protocol):
    """What every program's state tells; states are frozen values."""

    @property
    def progress(self) -> ProgressState: ...

    @property
    def drained(self) -> bool:
        """Whether nothing waits for an answer."""
        ...

    @property
    def files(self) -> frozenset[str]:
        """Names of the files of partials that the state needs."""
        ...

    def snapshot(self) -> dict[str, Any]:
        """Return the state without its progress as a JSON value."""
        ...


S = TypeVar("S", bound=ProgramState)
S_run = TypeVar("S_run", bound=ProgramState)


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch, and what is decided for it before its rows move."""

    batch_id: int
    rows: DataFrame
    steering: Steering
    timer: Timer
    interval: float | None


@dataclass(frozen=True, slots=True)
class Outcome(Generic[S]):
    """What a batch came to; nothing of it is true before the shell commits it.

    answers    for the output
    rejected   for the late sink, if the job has one
    current    for the sink of the current front, if the job has one, and the batch has changed it
    written    names of the files of partials that the batch wrote, and of those with rejected rows
    """

    state: S
    answers: Answers
    rejected: Answers | None
    written: frozenset[str]
    rejected_files: frozenset[str]
    fingerprint: Fingerprint
    metrics: BatchMetrics
    measured: Measured
    current: Answers | None = None


class Program(Protocol[S_run]):
    """A continuous query as the shell runs it."""

    def init(self) -> S_run:
        """Return the state before the first batch."""
        ...

    def restore(self, progress: Mapping[str, Any], operator: Mapping[str, Any]) -> S_run:
        """Return the state whose snapshots these are; raise CheckpointError if they cannot be."""
        ...

    def run(self, batch: Batch, state: S_run) -> Outcome[S_run]:
        """Process a batch; equal rows and states give equal answers, whatever is decided about workers."""
        ...

    def drain(self, batch: Batch, state: S_run) -> Outcome[S_run]:
        """Answer what is still open, as if the stream had ended; the batch has no rows."""
        ...
