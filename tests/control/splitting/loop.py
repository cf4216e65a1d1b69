"""A closed loop in miniature: panes come, a policy splits them, workers take a constant time per tuple."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from skypane.control.monitoring import SamplingPeriod, utilisation
from skypane.control.splitting import SplittingPolicy, SplittingSample, UpcomingBatch


class Interval(NamedTuple):
    rho: float
    sigma: float
    state: Any


def run(
    policy: SplittingPolicy[Any], intervals: Sequence[Sequence[int]], workers: int, cost: float
) -> Iterator[Interval]:
    """Yield what each interval of one second showed; entry j of an interval is the rows of its pane j."""
    state, first = policy.init(), 0
    for sizes in intervals:
        rows = {first + number: size for number, size in enumerate(sizes)}
        first += len(sizes)
        state, decision = policy.decide(state, UpcomingBatch(rows, workers, open_from=min(rows)))
        sent = decision.value.rows_by_worker(rows)
        shares = [share.rows for pane in rows for share in decision.value.shares[pane]]
        period = SamplingPeriod(1.0, tuple(cost * q for q in sent), sent, sent, len(rows), len(shares))
        found = utilisation(period)
        assert found is not None
        assert period.sigma is not None
        state = policy.observe(state, SplittingSample(period, tuple(shares)))
        yield Interval(found.rho, period.sigma, state)
