"""A table of an open format, Iceberg or Delta, as the writer of a query's batches sees it, and the note that it keeps there.

The note holds the number of the next batch, and the driver in charge. A commit follows a state of the table that was
read before, and is refused if another one has changed the note since, so a batch and its number are there both, or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol, Self, TypeVar

import pyarrow as pa

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.types import CheckpointError

PREFIX: Final = "skypane.batches."
"""Beginning of the names of properties with notes; the query and its role follow."""

SUMMARY: Final = ("skypane.query", "skypane.role", "skypane.driver", "skypane.batch")
"""Names by which a commit describes itself."""

State = TypeVar("State")
"""A table as it is after one of its commits."""


class OvertakenError(Exception):
    """The commit of another writer came first, or it is not known whether this one happened: look again."""


@dataclass(frozen=True)
class BatchNote:
    """The state of a query in a table that it writes to.

    next_batch  number of the first batch that is not in the table
    driver      name of the driver in charge; empty if the table has no note
    removes     whether the query removes rows that are there
    digest      of the batch before `next_batch`; empty if there was none
    """

    query: str
    role: str
    next_batch: int = 0
    driver: str = ""
    removes: bool = False
    digest: str = ""

    @property
    def property(self) -> str:
        """The name of the property."""
        return f"{PREFIX}{self.query}.{self.role}"

    @classmethod
    def read(cls, table: str, name: str, text: str) -> Self:
        """Return the note in the text of a property; raise CheckpointError if it is none."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError):
            raise CheckpointError(
                f"table {table} has the property {name!r}, which this version of skypane cannot read as a note of "
                f"batches, {text!r}: use the version that has written it, or restore it"
            ) from None

    def text(self) -> str:
        return json.dumps(asdict(self))

    def summary(self, batch_id: int | None) -> dict[str, str]:
        """Return how the commit of a batch, or of a start (None), describes itself."""
        of_batch = () if batch_id is None else (str(batch_id),)
        return dict(zip(SUMMARY, (self.query, self.role, self.driver, *of_batch), strict=False))


class OpenTable(Protocol[State]):
    """A table, with all that differs between formats."""

    @property
    def name(self) -> str:
        """The table, as errors name it."""
        ...

    def create(self, schema: pa.Schema) -> None:
        """Create the table for rows of a schema if it does not exist."""

    def close(self) -> None:
        """Close the connections of the client, if there are any; the next use of the table opens them again."""

    def now(self) -> State:
        """Return the newest state of the table."""
        ...

    def properties(self, state: State) -> Mapping[str, str]:
        """Return the properties of the table, among them the notes of queries."""
        ...

    def note(self, state: State, query: str, role: str) -> BatchNote:
        """Return the note of a query, without a driver if there is none."""
        ...

    def check_fits(self, state: State, schema: pa.Schema) -> None:
        """Raise ConfigError, which names the column, if the table cannot take rows of a schema."""

    def digest(self, answers: BatchRows) -> str:
        """Return a digest of the rows of a batch, as notes have it."""
        ...

    def prepared(self, answers: BatchRows) -> Any:
        """Return the rows of a batch for commit(), which may be tried several times."""
        ...

    def commit(self, state: State, note: BatchNote, batch: Any = None, *, whole: bool = False) -> None:
        """Set a note, and add the rows of a batch, in one commit that follows `state`.

        The versions of windows in a batch replace the rows that the table has of these windows; with `whole` a batch
        replaces all rows. Raises OvertakenError if the table has changed so that the caller has to look again; then
        nothing of this is there, unless the reply of a server was lost.
        """
