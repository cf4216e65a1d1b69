"""Figures of options that were not taken: those that are counted are those of the pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from measure import decisions
from tests.checkout import ROOT

PAGES = ROOT / "docs" / "decisions"


@pytest.mark.parametrize(
    ("page", "figure", "counted"),
    [
        ("03-far-future-clocks.md", decisions.one_wrong_clock, r": ([1-9][\d,]+) of 12,000"),
        ("04-drain-decides.md", decisions.daily_prices, r": (60|360) of 5,220"),
        ("20-exact-sums.md", decisions.sums_of_floats, r": (\d+) sums|off by (\S+)"),
    ],
)
def test_the_page_has_the_counted_figures(page: str, figure: Callable[[], Iterator[str]], counted: str):
    text = (PAGES / page).read_text(encoding="utf-8")
    found = [next(filter(None, match.groups())) for line in figure() for match in re.finditer(counted, line)]
    assert found
    assert [one for one in found if one.replace("e-0", "e-") not in text] == []
