"""A closed loop in miniature: panes come, a policy splits them, workers take a constant time per tuple."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from skypane.control.monitoring import SamplingPeriod, utilisation
from skypane.control.splitting import Routing, SplittingPolicy, SplittingSample, UpcomingBatch


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
        sent = rows_by_worker(decision.value, rows)
        shares = [share.rows for pane in rows for share in decision.value.shares[pane]]
        period = SamplingPeriod(1.0, tuple(cost * q for q in sent), tuple(sent), tuple(sent), len(rows), len(shares))
        found = utilisation(period)
        assert found is not None
        assert period.sigma is not None
        state = policy.observe(state, SplittingSample(period, tuple(shares)))
        yield Interval(found.rho, period.sigma, state)


def rows_by_worker(routing: Routing, rows: Mapping[int, int]) -> list[int]:
    """Return the number of rows of each worker in a batch with these `rows` by pane."""
    loads = [0] * routing.workers
    turns = routing.turn
    for pane, count in rows.items():
        if pane in routing.shares:
            cycle = [share.worker for share in routing.shares[pane] for _ in range(share.rows)]
            for worker in set(cycle):
                whole, rest = divmod(count, len(cycle))
                loads[worker] += whole * cycle.count(worker) + cycle[:rest].count(worker)
        elif routing.everywhere:
            for worker in range(routing.workers):
                loads[(turns + worker) % routing.workers] += (count + routing.workers - 1 - worker) // routing.workers
            turns += count
        else:
            loads[pane % routing.workers] += count
    return loads
