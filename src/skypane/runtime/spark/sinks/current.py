"""The current front as a folder with one file, which is replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.places import Place
from skypane.runtime.spark.sinks.answers import Answers
from skypane.runtime.spark.sinks.claim import FRONT, Claim, staging, take_folder
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import Store

FILE: Final = "front.parquet"


@dataclass(frozen=True)
class Current(Sink):
    """A folder that always holds the front of the last batch, whole, in one parquet file of an unchanging name.

    A new front is written beside it and moved over it at one stroke: who has the file open goes on reading the old one,
    who opens it anew reads the new one. (On an object store, which cannot move, the file is replaced as its client does.)
    """

    path: str

    @cached_property
    def store(self) -> Store:
        """The folder; where it is has been settled once, though the process may change its working folder."""
        return Store.at(self.path, "front")

    def check(self, schema: pa.Schema) -> None:
        del schema  # parquet holds any
        self.place()

    def place(self) -> Place:
        return self.store.place

    def open(self, claim: Claim) -> None:
        take_folder(self.store, claim, FRONT)

    def write(self, spark: SparkSession, answers: Answers, batch_id: int) -> None:
        del spark
        stage, draft = staging(self.store, answers.driver), f"{FRONT}-{batch_id:012d}.parquet"
        stage.write_parquet(draft, answers.schema, [answers.table()])
        stage.sync(draft)
        stage.move(draft, self.store, FILE)
        self.store.sync("")
