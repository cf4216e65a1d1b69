from __future__ import annotations

import pytest
from measure.requests import CASES, measured
from tests.parameters import slow_but


@pytest.mark.parametrize("name", slow_but(("skyline, rows in order",), tuple(CASES)))
def test_a_small_batch_takes_few_requests(name: str):
    case = CASES[name]
    run = measured(case, 8, 0.0)
    assert max(batch["LIST"] for batch in run.batches) == 0
    assert max(batch["HEAD"] for batch in run.batches) <= 5
    assert max(batch["PUT"] for batch in run.batches) <= (4 if case.in_order else 9)
