"""The committed state of a query, read for a client on a worker of the server; the reader takes nothing over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from skypane.control.parallelism import Workers
from skypane.operators.changes.comparison import QueryChange
from skypane.runtime.spark.connect.batch_requests import BatchRequests
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.control_loop import ControlLoop, ControlState
from skypane.runtime.spark.engine.engine_description import EngineDescription
from skypane.runtime.spark.engine.fencing import check_start
from skypane.runtime.spark.engine.front_program import ContinuousState
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.programs import columns_of_start, program_of
from skypane.runtime.spark.engine.query_changes import changes_of
from skypane.runtime.spark.engine.undisturbed import undisturbed
from skypane.runtime.spark.engine.without_late_sink import missed
from skypane.snapshots import to_json
from skypane.types import SkypaneError


@dataclass(frozen=True)
class CommittedReader:
    """Reads the checkpoint of a description."""

    description: EngineDescription

    def start(self) -> dict[str, Any]:
        """Return what a start has to know; raise CheckpointError if the checkpoint belongs to another query.

        Requests to an earlier start are removed.
        """
        settings, ledger = self.description.settings, self._ledger
        change, definition = check_start(ledger, self._store, settings, self.description.begin)
        latest = ledger.latest()
        last = -1 if latest is None else latest.batch_id
        definition.check(self._store, last)
        without = missed(ledger, self._store, settings)
        BatchRequests(self.description.checkpoint).clear()
        return {
            "last": last,
            # An engine removes what Spark has left unfinished, and Spark would refuse it before the first batch makes one.
            "unfinished": ledger.drain_begun or any(spark_files.unfinished(DocumentStore.at(settings.checkpoint))),
            "missed": without,
            "columns": columns_of_start(settings, self._store, change, latest, self._staged),
        }

    def changes(self) -> dict[str, Any]:
        """Return how the query differs from that of the checkpoint, in words."""
        settings = self.description.settings
        begin = self.description.begin
        return _in_words(changes_of(self._store, self._ledger, settings.plan, settings.schema, begin, settings.rows))

    def metrics_after(self, batch_id: int) -> list[dict[str, Any]]:
        """Return the metrics of the batches after `batch_id` whose manifests are kept, oldest first."""
        return undisturbed(lambda: self._ledger.after(batch_id))

    def history(self, last: int) -> list[dict[str, Any]]:
        """Return the metrics of the last batches, oldest first."""
        return self._ledger.history(last)

    def has_begun(self) -> bool:
        """Return whether Spark has begun a batch with rows that is not committed."""
        latest = self._ledger.latest()
        last = -1 if latest is None else latest.batch_id - latest.drains
        return spark_files.has_begun_after(DocumentStore.at(self.description.checkpoint), last)

    def control(self) -> dict[str, Any]:
        """Return the workers in force, and the reason for their numbers."""
        control, state = self._control
        return {"workers": to_json(state.workers), "explanation": control.explained(state)}

    def scale(self, plq: int | None, wlq: int | None) -> None:
        """Request other numbers of workers; raise ConfigError if they are invalid or out of the policy's bounds."""
        control, state = self._control
        requests = BatchRequests(self.description.checkpoint)
        now = requests.pending().workers or state.workers
        request = Workers(now.plq if plq is None else plq, now.wlq if wlq is None else wlq)
        control.scaled(state, request)
        requests.scale(request)

    def front(self) -> bytes:
        """Return the front of a continuous skyline as a stream of Arrow."""
        table = undisturbed(self._front)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    def _front(self) -> pa.Table:
        program = program_of(self.description.settings, self._store, self._staged)
        latest = self._ledger.latest()
        state = program.init() if latest is None else program.restore(latest.progress, latest.operator)
        if not isinstance(state, ContinuousState):
            raise SkypaneError(
                "this query answers windows and keeps no front: read its output, or use sp.continuous_skyline"
            )
        return state.current

    @property
    def _control(self) -> tuple[ControlLoop, ControlState]:
        control = ControlLoop.of(self.description.settings, self.description.workers)
        latest = self._ledger.latest()
        return control, control.init() if latest is None else control.restore(latest.control)

    @property
    def _store(self) -> DocumentStore:
        return DocumentStore.at(self.description.checkpoint).child("skypane")

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self._store)

    def _staged(self, role: str) -> DocumentStore:
        """Return where workers would write answers; nothing is written here."""
        return self._store.child(role)


def _in_words(change: QueryChange) -> dict[str, Any]:
    queries = {name: _in_words(one) for name, one in change.queries.items()}
    return {name: getattr(change, name) for name in ("kept", "begins", "refused", "recorded")} | {"queries": queries}


def change_in_words(words: dict[str, Any]) -> QueryChange:
    """Return the change that CommittedReader.changes() has put into words; it has no queries and no state."""
    kept, begins, refused = (tuple(words[name]) for name in ("kept", "begins", "refused"))
    queries = {name: change_in_words(one) for name, one in words["queries"].items()}
    return QueryChange(kept, begins, refused, recorded=words["recorded"], queries=queries)
