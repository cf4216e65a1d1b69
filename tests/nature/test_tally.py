"""Counts of campaigns are added, kept, and shown."""

from __future__ import annotations

import json
from collections import Counter

from tests.nature.schedule import DRIVER, SLOW, WORKER
from tests.nature.tally import Tally, table


def one() -> Tally:
    return Tally(Counter({DRIVER: 2, WORKER: 5, SLOW: 3}), Counter(refused=1), 1, 4, 30, 900, 61.0, ["a row is lost"])


def test_a_tally_is_kept_as_it_is():
    assert Tally.from_json(json.loads(json.dumps(one().to_json()))) == one()


def test_kills_are_what_kills():
    assert one().kills == 7


def test_a_table_has_sums_and_names_faults():
    text = table({"folder": one(), "state": one()})
    assert "| all | 14 | 2 | 8 | 60 | 1800 | 2 | 2 | 0 | 2.0 |" in text
    assert "- folder: a row is lost" in text
