"""The interface of a sink; writing a batch twice must have the same effect as writing it once."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Protocol, TypeVar, runtime_checkable

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.locations import Location
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.roll import Roll
from skypane.types import ConfigError

S = TypeVar("S")


@runtime_checkable
class Sink(Protocol):
    """Takes the answers of each micro-batch; a sink of your own inherits from this, and only write() is required.

    >>> seen = []
    >>> class Counts(sp.Sink):
    ...     def write(self, spark, answers, batch_id):
    ...         seen.append((batch_id, answers.table().num_rows))
    ...
    >>> job = sp.stream(arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=Counts())
    >>> handle = job.start(availableNow=True)
    >>> handle.await_termination()
    True
    >>> seen
    [(0, 1)]
    """

    def check(self, schema: pa.Schema) -> None:
        """Raise ConfigError if `schema` has a column that the sink cannot hold."""
        del schema  # most sinks hold all types

    def place(self) -> Location | None:
        """Return the folder that the sink needs exclusively, or None."""
        return None

    def for_job(self) -> Sink:
        """Return the sink to use in one job: if it keeps what belongs to a job or a start, a new one; else this one."""
        return self

    def for_rejected(self) -> Sink:
        """Return the sink to use for rejected rows instead of answers."""
        return self

    def open(self, claim: QueryStart) -> None:
        """Prepare for the batches of a driver start, after check(); raise CheckpointError if another query writes here."""
        del claim  # most sinks need no preparation

    def received(self, batch_id: int) -> bool:
        """Return whether an earlier start has delivered rows of a batch, as far as the sink knows; it has been opened."""
        del batch_id  # most sinks do not know: what they got may come again
        return False

    def stage(self, driver: str) -> DocumentStore | None:
        """Return the folder to which `driver` writes parquet files that write() then moves, or None."""
        del driver  # most sinks have no files
        return None

    def rolling(self) -> Roll | None:
        """Return when the rows of several batches are written at once; None: each batch is, before it is committed.

        Until then they wait in the checkpoint. write() then gets them under the number of the last of these batches.
        """
        return None

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        """Write the answers of a batch; called again with the same rows if the batch was not committed."""
        ...


def copied(sink: S, *state: str) -> S:
    """Return a copy of a sink in which these fields are empty lists, whatever the sink holds in them."""
    other = copy(sink)  # not from its arguments: what follows from the working folder of that time is kept
    for name in state:
        object.__setattr__(other, name, [])
    return other


def check_role(opened: Iterable[QueryStart], claim: QueryStart, what: str) -> None:
    """Raise ConfigError, which begins with `what`, if a start has opened a sink already, for other rows."""
    for other in opened:
        if other.driver == claim.driver and other.role != claim.role:
            raise ConfigError(f"{what}: one sink is for {other.role} and for {claim.role}; make one for each")
