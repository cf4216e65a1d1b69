"""The base of sinks into tables of open formats, which take each micro-batch in one commit, with its number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import pyarrow as pa
from pyspark.sql import SparkSession

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.client_options import option_texts
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.open_table import OpenTable, OvertakenError
from skypane.runtime.spark.sinks.open_table_rows import check_types
from skypane.runtime.spark.sinks.open_table_writer import OpenTableWriter
from skypane.runtime.spark.sinks.sink import Sink, check_role, copied
from skypane.types import CheckpointError, ConfigError, Duration, Length, micros


@dataclass(frozen=True)
class OpenTableSink(Sink):
    """Writes each micro-batch to a table, in one commit of the driver with its number.

    options  of the client, in which "$NAME" is an environment variable
    timeout  how long a batch is tried again while other writers of the table commit first
    """

    options: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False, kw_only=True)
    timeout: Duration = field(default="1 minute", kw_only=True)
    _schemas: list[pa.Schema] = field(default_factory=list, init=False, repr=False, compare=False)
    _opened: list[OpenTableWriter[Any]] = field(default_factory=list, init=False, repr=False, compare=False)

    kind: ClassVar[str]
    """Name of the format."""

    remedy: ClassVar[str]
    """What to check if a table cannot be used."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", option_texts(self.options, f"table {self.name}"))
        object.__setattr__(self, "timeout", Length(micros(self.timeout, "timeout")))
        if micros(self.timeout, "timeout") <= 0:
            raise ConfigError(f"table {self.name}: timeout must be longer than 0, got {self.timeout!r}")

    @property
    @abstractmethod
    def name(self) -> str:
        """The table, as errors and statements of SQL name it."""

    @property
    def whereabouts(self) -> str:
        """The table and where it is, for errors of the client."""
        return self.name

    @abstractmethod
    def opened_table(self) -> OpenTable[Any]:
        """Return the table, for one driver start."""

    @abstractmethod
    def reason(self, error: BaseException) -> str:
        """Return the text of a client's error in one line, without secrets."""

    def check(self, schema: pa.Schema) -> None:
        check_types(schema, self.name, self.kind)
        self._schemas[:] = [schema]

    def for_job(self) -> Self:
        return copied(self, "_schemas", "_opened")

    def open(self, claim: QueryStart) -> None:
        check_role((writer.claim for writer in self._opened), claim, f"table {self.name}")
        (schema,) = self._schemas
        with self._explained(), closing(self.opened_table()) as table:
            self._opened[:] = [OpenTableWriter.started(table, claim, schema, micros(self.timeout, "timeout") / 1e6)]

    def received(self, batch_id: int) -> bool:
        return any(batch_id < writer.next_batch for writer in self._opened)

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        del spark  # the driver writes the files: one commit has one writer
        if not self._opened:
            raise CheckpointError(f"table {self.name}: the sink has not been opened; start the query")
        writer = self._opened[0]
        if answers.row_count or batch_id < writer.next_batch or writer.claim.role == "front":
            with self._explained(f"batch {batch_id}"), closing(writer.table):
                writer.write(batch_id, answers)

    @contextmanager
    def _explained(self, what: str = "") -> Iterator[None]:
        """Replace errors of the client by ones that name the table and the remedy, and that show no secret."""
        try:
            yield
        except (CheckpointError, ConfigError):
            raise
        except Exception as error:  # noqa: BLE001 - each client, catalog and store has errors of its own
            if not what:
                remedy = "start the query again" if isinstance(error, OvertakenError) else self.remedy
                raise ConfigError(f"table {self.whereabouts} cannot be used ({self.reason(error)}); {remedy}") from None
            raise OSError(
                f"table {self.whereabouts} did not take {what} ({self.reason(error)}); it has none of its rows, or "
                f"all, and takes the batch when the query is started again"
            ) from None
