"""Commits to a table of Iceberg, one for each micro-batch: its rows, and a note of its number.

The note is a property of the table: the number of the next batch, and the driver in charge. It is set in the commit that
adds the rows, so both happen or none does, and it outlives the snapshot, which maintenance removes. Each commit names
the snapshot that it follows, and the catalog refuses it if the table has a newer one; then the note is read again, and
says whether the batch is there by now. A driver that starts commits an empty snapshot with its own name, so a driver that
was suspended before its commit finds another snapshot and another name, and stops.
"""

from __future__ import annotations

import json
import logging
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, cast

import pyarrow as pa
import pyarrow.compute as pc

from skypane.operators.window_query import VERSION, WINDOW_START
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.iceberg_rows import fitted
from skypane.runtime.spark.sinks.iceberg_table import BatchFiles, IcebergTable, OvertakenError, commit
from skypane.runtime.spark.sinks.row_changes import is_versioned
from skypane.runtime.spark.sinks.rows_digest import rows_digest
from skypane.types import CheckpointError

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.table import Table

log = logging.getLogger(__name__)

PREFIX: Final = "skypane.batches."
"""Beginning of the names of properties with notes; the query and its role follow."""

SUMMARY: Final = ("skypane.query", "skypane.role", "skypane.driver", "skypane.batch")
"""Names in the summary of a snapshot."""

_PAUSES: Final = (0.05, 2.0)
"""Seconds before the second try of a commit, and at most between two."""


@dataclass(frozen=True)
class BatchNote:
    """The state of a query in a table that it writes to.

    next_batch  number of the first batch that is not in the table
    driver      name of the driver in charge
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


class IcebergWriter:
    """The writer of one driver start, with the number of the first batch that is not in the table."""

    def __init__(self, table: IcebergTable, claim: QueryStart, schema: pa.Schema, timeout: float) -> None:
        self.table, self.claim, self.schema, self.timeout = table, claim, schema, timeout
        #: number of the first batch that is not in the table
        self.next_batch = 0

    @classmethod
    def started(cls, table: IcebergTable, claim: QueryStart, schema: pa.Schema, timeout: float) -> Self:
        """Return a writer that has taken the note from earlier drivers, and has a table for rows of `schema`."""
        writer = cls(table, claim, schema, timeout)
        table.create(schema)
        writer._until_committed("the start", writer._take)
        return writer

    def write(self, batch_id: int, answers: BatchRows) -> None:
        """Put the rows of a batch into the table, or nothing if they are there.

        Raises CheckpointError if the table has other rows of this batch or if another driver has taken over, and
        OvertakenError if other writers of the table commit first for longer than `timeout`.
        """
        digest, files = rows_digest(answers.parts()), BatchFiles(answers, self.table.name)

        def put(table: Table) -> None:
            note = self._note(table)
            if not note.driver:
                raise CheckpointError(
                    f"table {self.table.name} has lost its property {note.property!r}, the note of this query's batches: "
                    f"restore the table, or start with a new checkpoint and a new table"
                )
            if note.driver != self.claim.driver:
                raise CheckpointError(
                    f"table {self.table.name}: another driver of this query has started and taken over: this one stops"
                )
            if batch_id >= note.next_batch:
                then = replace(note, next_batch=batch_id + 1, digest=digest)
                self._commit(table, then, files, self._replaced(answers))
            elif digest != note.digest:
                raise CheckpointError(
                    f"batch {batch_id} comes again with other rows than table {self.table.name} has ({digest}, and "
                    f"{note.digest} there): Spark has lost its record of the batch. Start with a new checkpoint and a "
                    f"new table"
                )

        self._until_committed(f"batch {batch_id}", put)
        self.next_batch = max(self.next_batch, batch_id + 1)

    def _take(self, table: Table) -> None:
        note = self._note(table)
        removes = self.claim.role == "front" or is_versioned(self.schema)
        self._check_alone(table, removes=removes)
        fitted(self.schema, table, self.table.name)
        if note.next_batch > self.claim.next_batch + 1:
            raise CheckpointError(
                f"table {self.table.name} has the batches of this query up to {note.next_batch - 1}, and the next batch "
                f"of the checkpoint is {self.claim.next_batch}: the checkpoint is older than the output. Restore its "
                f"newest copy, or start with a new checkpoint and a new table. If the table has been rolled back to an "
                f"older snapshot, too, remove its property {note.property!r}"
            )
        if self.claim.next_batch and not note.driver:
            log.warning(
                "table %s has no property %s, the note of this query's batches: batch %d is written, though a killed "
                "driver may have written it, if the property was removed", self.table.name, note.property,
                self.claim.next_batch,
            )  # fmt: skip
        self.claim.check()  # before a commit that follows this state: a driver that was fenced must not take the note
        self._commit(table, replace(note, driver=self.claim.driver, removes=removes))
        self.next_batch = note.next_batch

    def _check_alone(self, table: Table, *, removes: bool) -> None:
        """Raise CheckpointError if this query or another one that has the table would remove rows of the other."""
        mine = BatchNote(self.claim.query, self.claim.role).property
        notes = {name: text for name, text in table.properties.items() if name.startswith(PREFIX) and name != mine}
        for name, text in notes.items():
            other = BatchNote.read(self.table.name, name, text)
            if removes or other.removes:
                raise CheckpointError(
                    f"table {self.table.name} has the {other.role} of query {other.query}, and a front and versions of "
                    f"windows remove rows that are there: name another table, or, if that query will not start again, "
                    f"delete the rows of this one and remove its property {name!r}"
                )

    def _note(self, table: Table) -> BatchNote:
        note = BatchNote(self.claim.query, self.claim.role)
        text = table.properties.get(note.property)
        return note if text is None else BatchNote.read(self.table.name, note.property, text)

    def _replaced(self, answers: BatchRows) -> BooleanExpression | None:
        """Return which rows of the table a batch replaces: a front all, a version those of its window."""
        from pyiceberg.expressions import AlwaysTrue, In  # noqa: PLC0415 - an extra

        if self.claim.role == "front":
            return AlwaysTrue()
        if not is_versioned(answers.schema):
            return None
        starts = set[int]()
        for part in answers.parts():
            later = part.filter(pc.greater(part[VERSION], 0))
            starts.update(later[WINDOW_START].cast(pa.int64()).to_pylist())
        # A type checker derives other arguments from the fields of the class.
        return cast("BooleanExpression", cast("Any", In)(WINDOW_START, starts)) if starts else None

    def _commit(
        self, table: Table, note: BatchNote, files: BatchFiles | None = None, replaced: BooleanExpression | None = None
    ) -> None:
        of_batch = () if files is None else (str(note.next_batch - 1),)
        summary = dict(zip(SUMMARY, (note.query, note.role, note.driver, *of_batch), strict=False))
        data = [] if files is None else files.of(table)
        commit(table, data, replaced, {note.property: note.text()}, summary)

    def _until_committed(self, what: str, attempt: Callable[[Table], None]) -> None:
        """Call `attempt` with the newest state of the table, again as long as other writers commit first.

        The time counts from the first refusal: the files of a batch may take longer to write than `timeout`.
        """
        limit = math.inf
        for pause in _pauses():
            try:
                attempt(self.table.now())
            except OvertakenError as error:
                limit = min(limit, time.monotonic() + self.timeout)
                if time.monotonic() + pause > limit:
                    raise OvertakenError(
                        f"other writers committed first, or replies were lost, for {self.timeout:g} s, the last time: {error}"
                    ) from None
                log.info("table %s: %s again, as another writer has committed first", self.table.name, what)
                time.sleep(pause)
            else:
                return


def _pauses() -> Iterator[float]:
    """Yield seconds between tries, at random, so that two writers do not meet again."""
    pause, longest = _PAUSES
    while True:
        yield pause * random.uniform(0.5, 1)
        pause = min(2 * pause, longest)
