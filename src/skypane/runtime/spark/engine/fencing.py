"""Take over a checkpoint at start: check everything, fence the previous driver, then remove leftovers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.ownership import Ownership
from skypane.runtime.spark.engine.query_definition import QueryDefinition
from skypane.runtime.spark.sinks.folder_owner import QueryStart
from skypane.types import CheckpointError


def fence(ledger: Ledger, store: DocumentStore, settings: JobSettings) -> None:
    """Fence the previous driver, and claim the checkpoint and the sinks' locations; nothing is deleted before that.

    Raises CheckpointError if one of them belongs to another query, is damaged or cannot be used.
    """
    definition = _definition(settings)
    with _usable("checkpoint", store.root):
        spark_files.check(DocumentStore.at(settings.checkpoint))
        query = ledger.claim(definition)
    owned = ledger.ownership
    with owned.in_charge():
        last, noted = ledger.latest(), QueryDefinition.free_of(store).get("places", {})
        locations = _claim_locations(settings, query, last, noted, owned)
        # Noted only now: the checkpoint must not refer to a location that could not be claimed.
        replace(definition, free={**definition.free, "places": locations}).settle(store, owned)
        owned.check()  # another driver may have started while the sinks were opened


def _claim_locations(
    settings: JobSettings, query: str, last: Manifest | None, noted: dict[str, str], owned: Ownership
) -> dict[str, str | None]:
    """Let each sink claim its location, and return the locations; `noted` are those claimed by the previous start.

    Before the first committed batch `noted` is ignored, because no location has committed output yet.
    """
    locations: dict[str, str | None] = {}
    for role, sink in settings.sinks.by_role.items():
        location = sink.place()
        locations[role] = None if location is None else str(location)
        before = None if last is None or location is None else noted.get(role)
        with _usable(role, str(location)):
            sink.open(QueryStart(query, owned.driver, 0 if last is None else last.batch_id + 1, before, owned.check))
    return locations


def tidy(
    ownership: Ownership, partials: DocumentStore, needed: frozenset[str], transient: tuple[DocumentStore, ...]
) -> None:
    """Remove the files of attempts that were never committed; raise CheckpointError if a needed file is missing.

    transient   folders that are empty between two batches

    Another driver may fence this one at any moment, and its files cannot be distinguished from leftovers. Files are therefore
    removed through the driver's own folder, which a fenced driver has lost.
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
    ownership.remove(partials, sorted(found - needed))
    for store in transient:
        ownership.remove(store, store.names())


@contextmanager
def _usable(role: str, location: str) -> Iterator[None]:
    """Turn an OSError into a CheckpointError that names the folder."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{role} {location} cannot be used ({error}): it must be a folder in which this user can read, write and "
            f"create files"
        ) from error


def _definition(settings: JobSettings) -> QueryDefinition:
    """Return the fixed and the free part of the query's definition; the numbers of a policy are in the free part."""
    plan = settings.plan.describe()
    progress = plan["progress"]
    columns = {
        "columns": {field.name: str(field.type) for field in settings.schema},
        "column order": settings.schema.names,
    }
    if "policy" in progress:
        plan["progress"] = {"policy": progress["policy"]}
    return QueryDefinition({**plan, **columns}, {"progress": progress})
