"""When a query that is to stop is taken to rest: what Spark says of it at one look after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from skypane.runtime.spark.batch_lifecycle import LOOKS, BatchLifecycle

BATCH, BETWEEN, IDLE = (True, True, ""), (False, True, ""), (False, False, "Waiting for data to arrive")
STARTING = (False, False, "Initializing sources")


@dataclass
class Looks:
    """A query that ends after its last look; each shows whether a trigger is active, whether there is data, and what it does."""

    left: list[tuple[bool, bool, str]]

    @property
    def isActive(self) -> bool:  # the name that Spark has
        return bool(self.left)

    @property
    def status(self) -> dict[str, Any]:
        triggered, available, message = self.left.pop(0)
        return {"isTriggerActive": triggered, "isDataAvailable": available, "message": message}


@pytest.mark.parametrize(
    ("looks", "left"),
    [
        ([IDLE, BATCH], 1),
        ([STARTING, BATCH, IDLE, BATCH], 1),  # it is about to write its first offsets
        ([BATCH, IDLE, BATCH], 1),
        ([BETWEEN, BATCH, IDLE, BATCH], 1),  # the next batch began at once
        ([BETWEEN] * (LOOKS - 1) + [BATCH, IDLE], 0),
        ([BETWEEN] * (LOOKS + 2), 2),  # it waits for its trigger
        ([BATCH, BATCH], 0),
    ],
)
def test_a_query_rests_where_no_batch_is_about_to_begin(looks: list[tuple[bool, bool, str]], left: int):
    turns = BatchLifecycle(lambda _rows, _batch: None)
    turns.query = query = Looks(looks.copy())  # type: ignore[assignment]
    turns.rest(60)
    assert len(query.left) == left
