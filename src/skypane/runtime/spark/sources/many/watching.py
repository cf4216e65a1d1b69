"""What is to be seen of inputs while they are read: who reads them, how fast they grow, how far behind reading is.

Rates are what comes, not what is read, over periods of a second and more; forecasts are those of the paper's forecaster,
one period ahead. The table goes the way of a source's latest offset, which Spark puts into the query's progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from skypane.control.admission.forecasting import Forecaster, HoltForecaster
from skypane.control.law import Decision
from skypane.metrics import InputSeen
from skypane.runtime.spark.sources.many.kinds import Found

TOLD = "inputs"
"""The key by which the table is known in a progress."""

EVERY = 1.0
"""Seconds of a period, at least."""

_HISTORY = 32
"""Periods that are remembered."""


@dataclass
class Watch:
    """Sees where inputs end, again and again; forgets those that have gone."""

    forecaster: Forecaster = field(default_factory=HoltForecaster)
    since: float | None = None
    lasts: dict[str, int] = field(default_factory=dict)
    rates: dict[str, tuple[float, ...]] = field(default_factory=dict)
    forecasts: dict[str, float] = field(default_factory=dict)

    def look(self, now: float, found: Mapping[str, Found], per_row: Mapping[str, float]) -> None:
        """See how far inputs go, at a time in seconds; `per_row` is how many places a row takes."""
        if self.since is not None and now - self.since < EVERY:
            return
        passed, self.since = None if self.since is None else now - self.since, now
        if passed is not None:
            self.rates = {
                name: (
                    *self.rates.get(name, ()),
                    max(one.last - self.lasts[name], 0) / per_row.get(name, 1.0) / passed,
                )[-_HISTORY:]
                for name, one in found.items()
                if name in self.lasts
            }
            self.forecasts = self._forecast()
        self.lasts = {name: one.last for name, one in found.items()}

    def _forecast(self) -> dict[str, float]:
        if not self.rates:
            return {}
        longest = max(map(len, self.rates.values()))
        table = np.full((len(self.rates), longest), np.nan)
        for row, values in zip(table, self.rates.values(), strict=True):
            row[-len(values) :] = values
        return dict(zip(self.rates, self.forecaster.forecast(table, 1)[:, 0].tolist(), strict=True))

    def table(
        self,
        found: Mapping[str, Found],
        per_row: Mapping[str, float],
        before: Mapping[str, int],
        after: Mapping[str, int],
        readers: Mapping[str, int],
    ) -> list[InputSeen]:
        """Return a row for each input that is there or was read, in the order of names.

        before, after   where the inputs stand before and after the batch that is planned
        readers         which reader had which input when they were last shared out
        """
        rows = []
        for name in sorted(found.keys() | after.keys()):
            one = found.get(name)
            place = after.get(name, 0 if one is None else one.first)
            left = 0 if one is None else max(one.last - place, 0)
            rates = self.rates.get(name, ())
            rows.append(
                InputSeen(
                    input=name,
                    reader=readers.get(name),
                    rate=round(rates[-1], 3) if rates else None,
                    forecast=round(self.forecasts[name], 3) if name in self.forecasts else None,
                    lag=round(left / per_row.get(name, 1.0)),
                    offset=place,
                    state=_state(one, left, moved=place != before.get(name)),
                )
            )
        return rows


def _state(one: Found | None, left: int, *, moved: bool) -> str:
    if one is None:
        return "gone"
    if left:
        return "behind"
    return "read" if moved else "silent"


class Told(NamedTuple):
    """What a source of many inputs tells: a row for each, and what was decided on its readers."""

    inputs: tuple[InputSeen, ...] = ()
    decisions: tuple[Decision[Any], ...] = ()

    @property
    def backlog(self) -> int:
        """Rows that wait at the inputs."""
        return sum(one.lag for one in self.inputs)

    @property
    def sized(self) -> bool:
        """Whether a bound on latency sets the readers."""
        return any(decision.what == "readers" for decision in self.decisions)


def to_json(rows: list[InputSeen], decision: Decision[int] | None = None) -> dict[str, Any]:
    """Return it as a source's latest offset."""
    return {TOLD: [row.to_json() for row in rows], "decisions": [] if decision is None else [decision.to_json()]}


def from_json(offset: Any) -> Told | None:
    """Return what is told in a latest offset; None if it is that of another source."""
    if not isinstance(offset, dict) or TOLD not in offset:
        return None
    decisions = tuple(Decision(**said) for said in offset["decisions"])
    return Told(tuple(InputSeen.from_json(row) for row in offset[TOLD]), decisions)
