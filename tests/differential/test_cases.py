"""A fixed number of cases of fixed seeds, and those that once failed; `make fuzz` goes on from there."""

from __future__ import annotations

import pytest
from tests.differential.checking import failure_of
from tests.differential.draw.cases import KINDS, drawn
from tests.differential.kept import kept
from tests.differential.running import Tally, cases, failures

CASES = {
    "skyline": 100,
    "top_k": 50,
    "k_dominant": 40,
    "top_delta": 35,
    "aggregate": 75,
    "continuous": 150,
    "progress": 50,
}


@pytest.mark.parametrize("one", list(kept()), ids=lambda one: one.why)
def test_what_once_failed(one):
    assert failure_of(one.case) is None


@pytest.mark.parametrize("kind", KINDS)
def test_all_ways_agree_with_the_definition(kind):
    found = [str(failure) for failure in failures(cases(0, kind, CASES[kind], None), Tally())]
    assert not found, "\n\n".join(found)


def test_a_seed_is_a_case():
    first, again = drawn(7), drawn(7)
    assert str(first.rows.to_pydict()) == str(again.rows.to_pydict())  # NaN is not itself
    assert str(first) == str(again)
