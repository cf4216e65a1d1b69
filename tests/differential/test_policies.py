"""A fixed number of streams of times for the policies, against their words."""

from __future__ import annotations

from tests.differential.policies import failures


def test_policies_drop_the_rows_that_their_definitions_drop():
    tried: list[int] = []
    failed = [f"seed {case.seed}: {how}; {case}" for case, how in failures(0, 600, 600, tried)]
    assert not failed, "\n\n".join(failed[:3])
    assert len(tried) == 600
