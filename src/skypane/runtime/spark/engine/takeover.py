"""How a start comes to own its checkpoint and the places of its sinks: everything is checked, then taken, then tidied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.definition import Definition
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.ownership import Ownership
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.sinks.claim import Claim
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError


def take_over(ledger: Ledger, store: Store, setting: Setting) -> None:
    """Take over the checkpoint and the places of the sinks, if they are this query's; delete nothing before that."""
    definition = _definition(setting)
    with _usable("checkpoint", store.root):
        spark_files.check(Store.at(setting.checkpoint))
        query = ledger.claim(definition)
    owned = ledger.ownership
    with owned.in_charge():
        places = _claim_places(setting, query, ledger.latest(), Definition.free_of(store).get("places", {}), owned)
        # Not sooner: a place that could not be claimed is none that the checkpoint goes on from.
        replace(definition, free={**definition.free, "places": places}).settle(store, owned)
        owned.check()  # another driver may have come while the sinks were opened


def _claim_places(
    setting: Setting, query: str, last: Manifest | None, noted: dict[str, str], owned: Ownership
) -> dict[str, str | None]:
    """Have each sink claim its place, and return the places; `noted` are those that the last start claimed.

    Before the first batch is committed nothing hangs on them: whatever lies in one of a start that failed counts for nothing.
    """
    places: dict[str, str | None] = {}
    for role, sink in setting.sinks.items():
        place = sink.place()
        places[role] = None if place is None else str(place)
        before = None if last is None or place is None else noted.get(role)
        with _usable(role, str(place)):
            sink.open(Claim(query, owned.driver, 0 if last is None else last.batch_id + 1, before, owned.check))
    return places


def tidy(ownership: Ownership, partials: Store, needed: frozenset[str], passing: tuple[Store, ...]) -> None:
    """Remove what tries that were never committed have left; raise CheckpointError if a file that is needed is gone.

    passing   folders that hold nothing between two batches
    Another driver may take over at any moment, whose files would look the same: they go by way of the driver's own folder.
    """
    for store in (partials, *passing):
        store.make()
    there = set(partials.names())
    gone = sorted(needed - there)
    if gone:
        raise CheckpointError(
            f"{partials.path(gone[0])} is gone, and {len(gone) - 1} more files of open panes: restore the "
            f"whole checkpoint from a copy, or start with a new one"
        )
    ownership.remove(partials, sorted(there - needed))
    for store in passing:
        ownership.remove(store, store.names())


@contextmanager
def _usable(role: str, place: str) -> Iterator[None]:
    """Say in one sentence whose folder cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{role} {place} cannot be used ({error}): it must be a folder that this user can read, write and create "
            f"files in"
        ) from error


def _definition(setting: Setting) -> Definition:
    """Return what may and what may not change on a checkpoint; of a policy's numbers it can take others."""
    asked = setting.plan.describe()
    progress = asked["progress"]
    columns = {
        "columns": {field.name: str(field.type) for field in setting.schema},
        "column order": setting.schema.names,
    }
    if "policy" in progress:
        asked["progress"] = {"policy": progress["policy"]}
    return Definition({**asked, **columns}, {"progress": progress})
