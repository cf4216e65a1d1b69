"""A fixed number of sets of points for the kernels, against all pairs."""

from __future__ import annotations

from tests.differential.points import failures


def test_kernels_agree_with_all_pairs():
    tried: list[None] = []
    failed = [f"seed {case.seed}: {how}; {case}" for case, how in failures(0, 60, 600, lambda: tried.append(None))]
    assert not failed
    assert len(tried) == 60
