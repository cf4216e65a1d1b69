"""What happens to the commits of a sink into a table of an open format: kills, lost replies, suspended drivers, others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from tests.runtime.rows_of_batches import NO_SPARK, numbers

from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import CheckpointError


class Killed(BaseException):
    """The process ends here."""


Step = Callable[[Callable[[], Any]], Any]
"""What becomes of a commit: it is called with the commit."""


def dies_before(_commit: Callable[[], Any]) -> Any:
    raise Killed


def dies_after(commit: Callable[[], Any]) -> Any:
    commit()
    raise Killed


@dataclass
class Interposed:
    """Stands between the sinks and the client: the next commit of a sink goes by the step that is set here.

    unknown  the client's error for a commit of which it is not known whether it happened
    """

    unknown: Exception
    step: Step | None = None

    def commit(self, original: Callable[..., Any], *what: Any, **more: Any) -> Any:
        step, self.step = self.step, None
        return original(*what, **more) if step is None else step(lambda: original(*what, **more))

    def loses_the_reply(self, commit: Callable[[], Any]) -> Any:
        commit()
        raise self.unknown

    def is_lost(self, _commit: Callable[[], Any]) -> Any:
        raise self.unknown

    @property
    def outcomes(self) -> dict[str, Step]:
        return {
            "dies before": dies_before,
            "dies after": dies_after,
            "loses the reply": self.loses_the_reply,
            "is lost": self.is_lost,
        }


def write_at_once(sinks: Sequence[Sink]) -> list[int]:
    """Write five batches of each sink, of all at once; return the numbers that a table has then."""

    def write_all(at: int) -> None:
        for batch in range(5):
            sinks[at].write(NO_SPARK, numbers(10 * batch + at), batch)

    with ThreadPoolExecutor(len(sinks)) as threads:
        list(threads.map(write_all, range(len(sinks))))
    return sorted(10 * batch + at for batch in range(5) for at in range(len(sinks)))


class TablePlace(Protocol):
    """What a History needs of a table (table_places.py)."""

    def started(self, next_batch: int = 0, *, driver: str) -> Sink: ...
    def rows(self) -> list[Any]: ...
    def foreign(self, number: int) -> None: ...
    @property
    def maintenance(self) -> Mapping[str, Callable[[], None]]: ...


def steps_of(outside: Iterable[str]) -> list[str]:
    """Return the steps of a History, with these ways to maintain the table."""
    outcomes = Interposed(Exception()).outcomes
    return [
        "deliver", "start", "deliver: frozen", "foreign", *outside,
        *(f"deliver: {one}" for one in outcomes), *(f"start: {one}" for one in outcomes),
    ]  # fmt: skip


@dataclass
class History:
    """Drivers of one query in turn, with the ledger of its checkpoint, and what else happens to the table."""

    place: TablePlace
    interposed: Interposed
    steps: Iterator[str]
    starts: int = 0
    committed: int = 0
    alien: int = 0
    driver: Sink | None = None

    def play(self) -> None:
        for step in self.steps:
            self.take(step)
        self.start()
        self.deliver()

    def check(self) -> None:
        """Raise AssertionError if a batch is missing from the table, or is there twice."""
        expected = Counter([*range(2 * self.committed), *(-number for number in range(1, self.alien + 1))])
        assert Counter(self.place.rows()) == expected

    def take(self, step: str) -> None:
        kind, _, outcome = step.partition(": ")
        if kind not in {"deliver", "start"}:
            if self.starts:
                self.outside(step)
            return
        if kind == "deliver" and self.driver is None:
            self.start()
        self.interposed.step = self.frozen if outcome == "frozen" else self.interposed.outcomes.get(outcome)
        self.start() if kind == "start" else self.deliver()
        self.interposed.step = None

    def outside(self, step: str) -> None:
        if step == "foreign":
            self.alien += 1
            self.place.foreign(-self.alien)
        else:
            self.place.maintenance[step]()

    def start(self) -> None:
        self.starts += 1
        self.driver = None
        with suppress(Killed):
            self.driver = self.place.started(self.committed, driver=f"driver-{self.starts:06d}")

    def deliver(self) -> None:
        """Deliver the next batch, in half of the cases twice, and record it in the ledger if this driver may."""
        number, driver, starts = self.committed, self.driver, self.starts
        if driver is None:
            return
        try:
            driver.write(NO_SPARK, numbers(2 * number, 2 * number + 1), number)
            if number % 2:
                driver.write(NO_SPARK, numbers(2 * number + 1, 2 * number), number)
        except Killed:
            self.driver = None if self.starts == starts else self.driver
        except CheckpointError as fenced:
            if self.starts == starts:
                raise AssertionError(f"{driver} is told that it is fenced, and no other has started") from fenced
        else:
            self.committed += self.starts == starts

    def frozen(self, commit: Callable[[], Any]) -> Any:
        """Before this driver's commit its successor starts, and some of what follows happens."""
        self.start()
        for step in islice(self.steps, 3):
            self.take(step)
        return commit()
