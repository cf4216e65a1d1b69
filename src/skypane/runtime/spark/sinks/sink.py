"""What a sink is: given a batch twice, it must end up as if it had been given it once."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.places import Place
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.claim import Claim
from skypane.runtime.spark.store import Store


@runtime_checkable
class Sink(Protocol):
    """Takes the answers of one batch after the other. One of your own inherits from this, and must only write()."""

    def check(self, schema: pa.Schema) -> None:
        """Raise ConfigError if rows of `schema` have a column that the sink cannot hold."""
        del schema  # most hold any

    def place(self) -> Place | None:
        """Return the folder that the sink needs for itself, or None."""
        return None

    def for_rejected(self) -> Sink:
        """Return the sink to be used for rejected rows instead of answers."""
        return self

    def open(self, claim: Claim) -> None:
        """Prepare for the batches of a start of a query; raise CheckpointError if another query writes here."""
        del claim  # most have nothing to prepare

    def stage(self, driver: str) -> Store | None:
        """Return where the start `driver` of a query should write parquet files for write() to move, or None."""
        del driver  # most have no files
        return None

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        """Take the answers of a batch; called again with the same rows if the batch was not committed."""
        ...
