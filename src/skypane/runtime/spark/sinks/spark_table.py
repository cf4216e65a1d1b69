"""Answers as rows of a table of Spark's catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.sink import Sink, check_role, copied
from skypane.types import CheckpointError, ConfigError


@dataclass(frozen=True)
class Table(Sink):
    """Appends each micro-batch to a table of Spark's catalog by a Spark job, at least once; exactly once if it is Delta's.

    A table that does not exist is created. A batch that comes again after a kill is added again, except to a table of
    Delta, which skips it by its number (txnAppId, txnVersion).

    name     the table, as in saveAsTable: answers, shop.answers, catalog.shop.answers
    using    format of a table that does not exist, such as delta; by default that of the session
    options  of Spark's writer

    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output=sp.Table("best")
    ... )
    """

    name: str
    _: KW_ONLY
    using: str | None = None
    options: Mapping[str, str | bool | int | float] = field(default_factory=dict, hash=False)
    _claims: list[QueryStart] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.name))  # a job file may have a number there
        if not all(part.strip() for part in self.name.split(".")):
            raise ConfigError(f"name must be that of a table, as in shop.answers, got {self.name!r}")

    def for_job(self) -> Table:
        return copied(self, "_claims")

    def open(self, claim: QueryStart) -> None:
        if claim.role == "front":
            raise ConfigError(
                f"table {self.name}: a table of Spark's catalog gets rows added, and a front replaces those that are "
                f"there: use sp.Delta, sp.Iceberg or sp.Jdbc"
            )
        check_role(self._claims, claim, f"table {self.name}")
        self._claims[:] = [claim]

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        if not self._claims:
            raise CheckpointError(f"table {self.name}: the sink has not been opened; start the query")
        if not answers.row_count:
            return
        claim = self._claims[0]
        claim.check()
        writer = answers.dataframe(spark).write.mode("append").options(**self.options)
        writer = writer.options(txnAppId=f"skypane.{claim.query}.{claim.role}", txnVersion=batch_id)
        (writer if self.using is None else writer.format(self.using)).saveAsTable(self.name)
