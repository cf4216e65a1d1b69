"""Many cases, one after the other, until one fails or the time is up."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from tests.differential.case import Case
from tests.differential.checking import Failure, failure_of
from tests.differential.draw.cases import drawn, kind_of


@dataclass
class Tally:
    """How many cases of each kind were tried, and the seconds of a core that they took."""

    cases: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def __str__(self) -> str:
        """One line: cases, cases a minute, and both of each kind."""
        kinds = "; ".join(f"{kind} {n} ({_rate(n, self.seconds[kind])})" for kind, n in sorted(self.cases.items()))
        total = self.cases.total()
        return f"{total} cases, {_rate(total, sum(self.seconds.values()))} a minute of a core: {kinds}"


def _rate(cases: int, seconds: float) -> str:
    return f"{60 * cases / seconds:.0f}" if seconds else "-"


def seeds(first: int, only: str | None = None) -> Iterator[int]:
    """Yield seeds from the first on, of one kind if that is wanted."""
    return (seed for seed in count(first) if only is None or kind_of(seed) == only)


def failures(cases: Iterable[Case], tally: Tally) -> Iterator[Failure]:
    """Try cases; yield those that fail, as they were drawn."""
    began = time.process_time()
    for case in cases:
        failure = failure_of(case)
        tally.cases[case.kind] += 1
        tally.seconds[case.kind] += time.process_time() - began
        if failure is not None:
            yield failure
        began = time.process_time()


def cases(first: int, only: str | None, most: int | None, seconds: float | None) -> Iterator[Case]:
    """Yield the cases of seeds, as many as are wanted, or until the time is up."""
    until = None if seconds is None else time.monotonic() + seconds
    for number, seed in enumerate(seeds(first, only)):
        if (most is not None and number >= most) or (until is not None and time.monotonic() > until):
            return
        yield drawn(seed)
