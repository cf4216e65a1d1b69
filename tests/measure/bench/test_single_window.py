"""A task of one window at its small size: both ways give the same answers, which the measurement checks."""

from __future__ import annotations

import pytest
from measure.bench.single_window import HEAD, SUBJECTS, line


@pytest.mark.long
@pytest.mark.parametrize("name", SUBJECTS)
def test_each_query_has_a_line(name: str):
    found = line(name, 50, 12)
    assert found[:3] == [name, "50", "12"]
    assert len(found) == len(HEAD)
    assert all(float(cell) >= 0 for cell in found[3:])
