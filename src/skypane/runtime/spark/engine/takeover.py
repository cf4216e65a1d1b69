"""How a start comes to own its checkpoint and the places of its sinks: everything is checked, then taken, then tidied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from skypane.runtime.spark.engine import spark_files
from skypane.runtime.spark.engine.definition import Definition
from skypane.runtime.spark.engine.ledger import Ledger
from skypane.runtime.spark.engine.ownership import Ownership
from skypane.runtime.spark.engine.setting import Setting
from skypane.runtime.spark.sinks.claim import Claim
from skypane.runtime.spark.sinks.sink import Sink
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError


def take_over(ledger: Ledger, store: Store, setting: Setting) -> None:
    """Take over the checkpoint and the places of the sinks, if they are this query's; delete nothing before that."""
    places = {role: _place(sink) for role, sink in setting.sinks.items()}
    with _usable("checkpoint", store.root):
        spark_files.check(Store.at(setting.checkpoint))
        before = Definition.free_of(store).get("places", {})
        query = ledger.claim(_definition(setting, places))
    last = ledger.latest()
    owned = ledger.ownership
    with owned.in_charge():
        for role, sink in setting.sinks.items():
            was = before.get(role) if places[role] is not None else None
            with _usable(role, str(places[role])):
                sink.open(Claim(query, owned.driver, 0 if last is None else last.batch_id + 1, was, owned.check))
        owned.check()  # another driver may have come while the sinks were opened


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


def _definition(setting: Setting, places: dict[str, str | None]) -> Definition:
    """Return what may and what may not change on a checkpoint; of a policy's numbers it can take others."""
    asked = setting.plan.describe()
    progress = asked["progress"]
    columns = {
        "columns": {field.name: str(field.type) for field in setting.schema},
        "column order": setting.schema.names,
    }
    if "policy" in progress:
        asked["progress"] = {"policy": progress["policy"]}
    return Definition({**asked, **columns}, {"progress": progress, "places": places})


def _place(sink: Sink) -> str | None:
    place = sink.place()
    return None if place is None else str(place)
