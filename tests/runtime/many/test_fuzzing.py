"""A sample of hostile bytes at all that reads them; `make fuzz-intake MINUTES=20` tries more."""

from __future__ import annotations

import pytest
from tests.runtime.many import fuzzing


@pytest.mark.slow
def test_hostile_bytes_end_no_process_and_lose_no_line():
    count, wrong = fuzzing.fuzz(7, lambda number: number >= 120)
    assert count > 120
    assert not wrong


@pytest.mark.parametrize(("seed", "number"), [(7700, 12958)], ids=["minus NaN"])
def test_what_once_failed(seed: int, number: int):
    fuzzing.case(seed, number)
