"""Commits to a table of an open format, one for each micro-batch: its rows, and a note of its number (open_table.py).

A driver that starts commits a note with its own name, so a driver that was suspended before its commit finds another
state and another name, and stops. A commit that is refused, or whose reply is lost, is followed by a look at the note,
which says whether the batch is there by now.
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, Generic, Self

import pyarrow as pa

from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.runtime.spark.sinks.open_table import PREFIX, BatchNote, OpenTable, OvertakenError, State
from skypane.runtime.spark.sinks.repeated_batch import of_other_rows
from skypane.runtime.spark.sinks.row_changes import is_versioned
from skypane.types import CheckpointError

log = logging.getLogger(__name__)

_PAUSES: Final = (0.05, 2.0)
"""Seconds before the second try of a commit, and at most between two."""


class OpenTableWriter(Generic[State]):
    """The writer of one driver start, with the number of the first batch that is not in the table."""

    def __init__(self, table: OpenTable[State], claim: QueryStart, schema: pa.Schema, timeout: float) -> None:
        self.table, self.claim, self.schema, self.timeout = table, claim, schema, timeout
        #: number of the first batch that is not in the table
        self.next_batch = 0

    @classmethod
    def started(cls, table: OpenTable[State], claim: QueryStart, schema: pa.Schema, timeout: float) -> Self:
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
        digest, batch = self.table.digest(answers), self.table.prepared(answers)

        def put(state: State) -> None:
            note = self._note(state)
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
                self.table.commit(state, then, batch, whole=self.claim.role == "front")
            elif digest != note.digest:
                raise of_other_rows(batch_id, f"table {self.table.name}", digest, note.digest)

        self._until_committed(f"batch {batch_id}", put)
        self.next_batch = max(self.next_batch, batch_id + 1)

    def _take(self, state: State) -> None:
        note = self._note(state)
        removes = self.claim.role == "front" or is_versioned(self.schema)
        self._check_alone(state, removes=removes)
        self.table.check_fits(state, self.schema)
        if note.next_batch > self.claim.next_batch + 1:
            raise CheckpointError(
                f"table {self.table.name} has the batches of this query up to {note.next_batch - 1}, and the next batch "
                f"of the checkpoint is {self.claim.next_batch}: the checkpoint is older than the output. Restore its "
                f"newest copy, or start with a new checkpoint and a new table. If the table has been rolled back, too, "
                f"remove its property {note.property!r}"
            )
        if self.claim.next_batch and not note.driver:
            log.warning(
                "table %s has no property %s, the note of this query's batches: batch %d is written, though a killed "
                "driver may have written it, if the property was removed", self.table.name, note.property,
                self.claim.next_batch,
            )  # fmt: skip
        self.claim.check()  # before a commit that follows this state: a driver that was fenced must not take the note
        self.table.commit(state, replace(note, driver=self.claim.driver, removes=removes))
        self.next_batch = note.next_batch

    def _check_alone(self, state: State, *, removes: bool) -> None:
        """Raise CheckpointError if this query or another one that has the table would remove rows of the other."""
        mine = BatchNote(self.claim.query, self.claim.role).property
        for name, text in self.table.properties(state).items():
            if not name.startswith(PREFIX) or name == mine:
                continue
            other = BatchNote.read(self.table.name, name, text)
            if removes or other.removes:
                raise CheckpointError(
                    f"table {self.table.name} has the {other.role} of query {other.query}, and a front and versions of "
                    f"windows remove rows that are there: name another table, or, if that query will not start again, "
                    f"delete the rows of this one and remove its property {name!r}"
                )

    def _note(self, state: State) -> BatchNote:
        return self.table.note(state, self.claim.query, self.claim.role)

    def _until_committed(self, what: str, attempt: Callable[[State], None]) -> None:
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
