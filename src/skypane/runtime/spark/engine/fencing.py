"""Take over a checkpoint at start: check everything, fence the previous driver, then remove leftovers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from skypane.locations import Location
from skypane.operators.changes.comparison import QueryChange
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import outbox, spark_files
from skypane.runtime.spark.engine.begun_batch import settings_of_begun
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.owner import Owner
from skypane.runtime.spark.engine.query_changes import Begin, changes_of
from skypane.runtime.spark.engine.query_definition import SEVERAL_MAY_CHANGE, QueryDefinition
from skypane.runtime.spark.engine.sent_rows import sent
from skypane.runtime.spark.engine.without_late_sink import missed
from skypane.runtime.spark.error_causes import has_no_room
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.shared_plan import SharedPlan
from skypane.types import CheckpointError
from skypane.wording import counted

log = logging.getLogger(__name__)

_OF_ALL = frozenset({"output", "late", "front"})
"""Roles of the sinks that belong to the whole query of a checkpoint."""


def fence(
    ledger: Ledger, store: DocumentStore, settings: JobSettings, change: QueryChange, definition: QueryDefinition
) -> JobSettings | None:
    """Fence the previous driver, and claim the checkpoint and the sinks' locations; nothing is deleted before that.

    Change and definition are those of check_start(). At the end it removes what the previous driver's Spark has left unfinished.

    Returns the settings by which the next batch, of which a sink has rows, has to be finished; None: those of the job.

    Raises CheckpointError if one of them belongs to another query, is damaged or cannot be used.
    """
    without = missed(ledger, store, settings)
    if without is not None:
        log.warning(without)
    with _usable("checkpoint", store.root):
        query = ledger.claim(definition)
    owned = ledger.ownership
    with owned.in_charge():
        last, noted = ledger.latest(), QueryDefinition.free_of(store).get("places", {})
        _check_outbox(last, store, settings, change)  # the previous driver has gone on since the first check
        noted = noted if change.start is None else {}  # answers of another query may need another folder
        locations = _claim_locations(settings, query, last, noted, owned)
        following, begun = next_after(last), None
        if any(sink.received(following) for sink in settings.sinks.by_role.values()):
            begun = settings_of_begun(store, following, settings, definition)
        # Noted only now: the checkpoint must not refer to a location that could not be claimed.
        replace(definition, free={**definition.free, "places": locations}).settle(
            store, owned, following - (begun is None)
        )
        for folder, drafts in spark_files.unfinished(DocumentStore.at(settings.checkpoint)):
            owned.remove(folder, drafts)
        owned.check()  # another driver may have started while the sinks were opened
    return begun


def next_after(last: Manifest | None) -> int:
    """Return the number of the batch after the newest manifest."""
    return 0 if last is None else last.batch_id + 1


def open_sinks(ledger: Ledger, store: DocumentStore, job: JobSettings, runs: JobSettings) -> None:
    """Open the sinks of a job for the rows of the settings that it runs by; they are open for those of other settings."""
    last = ledger.latest()
    noted = QueryDefinition.free_of(store)["places"]
    job.sinks.check(sent(job.plan, job.schema, job.added) | sent(runs.plan, runs.schema, job.added))
    _claim_locations(job, QueryDefinition.name(store), last, noted, ledger.ownership)


def check_start(
    ledger: Ledger, store: DocumentStore, settings: JobSettings, begin: Begin | None = None
) -> tuple[QueryChange, QueryDefinition]:
    """Return how the query differs from that of the checkpoint, and its definition; write nothing.

    Raises CheckpointError if the checkpoint belongs to other queries, is damaged or cannot be used; that it belongs to
    another query alone, QueryDefinition.check() finds.
    """
    with _usable("checkpoint", store.root):
        change = changes_of(store, ledger, settings.plan, settings.schema, begin, settings.rows)
        if change.refused and isinstance(settings.plan, SharedPlan):
            raise CheckpointError(
                f"the checkpoint {store.root} belongs to other queries: {'; '.join(change.refused)}. Use another "
                f"checkpoint, or restore the queries. {SEVERAL_MAY_CHANGE}"
            )
        _check_outbox(ledger.latest(), store, settings, change)
        definition = _definition(settings, change)
        spark_files.check(DocumentStore.at(settings.checkpoint))
    return change, definition


def _check_outbox(latest: Manifest | None, store: DocumentStore, settings: JobSettings, change: QueryChange) -> None:
    """Raise CheckpointError if rows wait for the file of a sink that the job does not have, or has elsewhere.

    A sink may move with its whole folder, which it checks itself; a query that begins at the offsets of another may
    have a folder of its own.
    """
    waiting = {} if latest is None else outbox.restored(latest.outbox)
    sinks, places = settings.sinks.by_role, QueryDefinition.free_of(store).get("places", {})
    for role, refs in waiting.items():
        if role not in sinks:
            why = "this job has no such sink: start the query once as it was"
        elif change.start is not None and places.get(role) != _named(sinks[role].place()):
            why = f"this query begins in another place than {places.get(role)}: start the earlier query once"
        else:
            continue
        rows = counted(sum(ref.rows for ref in refs), "rows")
        raise CheckpointError(
            f"{rows} for {role} wait in the checkpoint {store.root} for their file (roll=), and {why}, which writes the file"
        )


def _named(location: Location | None) -> str | None:
    """Return how the definition names the location of a sink."""
    return None if location is None else str(location)


def _claim_locations(
    settings: JobSettings, query: str, last: Manifest | None, noted: dict[str, str], owned: Owner
) -> dict[str, str | None]:
    """Let each sink claim its location, and return the locations; `noted` are those claimed by the previous start.

    Before the first committed batch `noted` is ignored, because no location has committed output yet.
    """
    locations: dict[str, str | None] = {}
    for role, sink in settings.sinks.by_role.items():
        location = sink.place()
        locations[role] = _named(location)
        before = None if last is None or location is None else noted.get(role)
        with _usable(role, str(location)):
            # Queries that share a checkpoint own their folders by name, so that two of them cannot be swapped.
            owner = query if role in _OF_ALL else f"{query} {role}"
            # Rows that wait for their file are delivered under the number of the last batch (outbox.py).
            number = 0 if last is None else last.batch_id + (role not in last.outbox)
            sink.open(QueryStart(owner, owned.driver, number, before, owned.check, role))
    return locations


def tidy(
    ownership: Owner,
    partials: DocumentStore,
    needed: frozenset[str],
    operator: object,
    transient: tuple[DocumentStore, ...],
) -> frozenset[str]:
    """Remove the files of attempts that were never committed, and return those of partials that the newest manifest names.

    operator    the state in that manifest; its files stay, as the next start may be of the query that needs them
    transient   folders that are empty between two batches

    Another driver may fence this one at any moment, and its files cannot be distinguished from leftovers. Files are therefore
    removed through the driver's own folder, which a fenced driver has lost. Raises CheckpointError if a needed file is missing.
    """
    for store in (partials, *transient):
        store.make()
    found = set(partials.names())
    missing = sorted(needed - found)
    if missing:
        raise CheckpointError(
            f"{partials.path(missing[0])} is gone, and {len(missing) - 1} more files of open panes: restore the "
            f"whole checkpoint from a copy, or start with a new one"
        )
    named = frozenset(_texts(operator)) & found
    ownership.remove(partials, sorted(found - needed - named))
    for store in transient:
        ownership.remove(store, store.names())
    return named


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | Sequence):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


@contextmanager
def _usable(role: str, location: str) -> Iterator[None]:
    """Turn an OSError into a CheckpointError that names the folder."""
    try:
        yield
    except OSError as error:
        if has_no_room(error):
            raise  # as everywhere else
        raise CheckpointError(
            f"{role} {location} cannot be used ({error}): it must be a folder in which this user can read, write and "
            f"create files"
        ) from error


def _definition(settings: JobSettings, change: QueryChange) -> QueryDefinition:
    """Return the query's definition, and the earlier one from which it may continue.

    The numbers of a policy are in the free part.
    """
    plan = settings.plan
    return QueryDefinition(
        plan.definition(settings.schema),
        plan.rules,
        change.recorded if change and not change.refused else None,
    )
