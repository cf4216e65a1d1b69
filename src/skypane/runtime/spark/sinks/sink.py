"""What a sink is: told a batch twice, it must end up as if told once; and what a user's `output` and `late` mean."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.places import Place
from skypane.runtime.spark.sinks.answers import Answers
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

    def open(self, owner: str) -> None:
        """Prepare for the batches of the query `owner`; raise CheckpointError if another query writes here."""
        del owner  # most have nothing to prepare

    def stage(self) -> Store | None:
        """Return where parquet files of answers should be written so that write() need only move them, or None."""
        return None

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        """Take the answers of a batch; called again with the same rows if the batch was not committed."""
        ...
