"""A fixed number of sets of points for the kernels, against all pairs."""

from __future__ import annotations

from tests.differential.alone import failures
from tests.differential.points import drawn, failure


def test_kernels_agree_with_all_pairs():
    tried: list[int] = []
    failed = [f"seed {case.seed}: {how}; {case}" for case, how in failures(drawn, failure, 0, 60, 600, tried)]
    assert not failed
    assert len(tried) == 60
