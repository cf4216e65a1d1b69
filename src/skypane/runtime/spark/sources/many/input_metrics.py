"""Metrics of inputs while they are read: their readers, rates, forecasts and lag.

Rates count arriving rows, not rows read, over periods of at least a second. Forecasts are those of the paper's
forecaster, one period ahead; meta-data may let more be expected within the lead time (control/admission/ahead.py). The table travels as the source's latest offset, which Spark adds to the query's progress.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from skypane.control.admission.ahead import LEAD, RatesAhead, rates_ahead
from skypane.control.admission.forecasting import Forecaster, HoltForecaster
from skypane.metrics import InputMetrics, InputReport
from skypane.policy import Decision
from skypane.runtime.spark.sources.many.input_kind import InputExtent
from skypane.types import Duration

INPUTS = "inputs"
"""The key of the table in a query's progress."""

EVERY = 1.0
"""The shortest period in seconds."""

_HISTORY = 32
"""Periods whose rates are kept."""


@dataclass
class GrowthTracker:
    """Tracks the ends of inputs over time; drops inputs that no longer exist."""

    forecaster: Forecaster = field(default_factory=HoltForecaster)
    lead: Duration = LEAD
    since: float | None = None
    lasts: dict[str, int] = field(default_factory=dict)
    rates: dict[str, tuple[float, ...]] = field(default_factory=dict)
    #: lengths of the periods of the rates, in seconds
    lengths: tuple[float, ...] = ()
    ahead: RatesAhead = field(default_factory=RatesAhead)

    def look(
        self, now: float, found: Mapping[str, InputExtent], per_row: Mapping[str, float], clock: float | None = None
    ) -> None:
        """Record the ends of inputs at the time `now` in seconds; `per_row` gives the offset units of a row.

        `clock` is the same time in seconds since the epoch, by which meta-data state changes; None: `now` is that.
        """
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
            self.lengths = (*self.lengths, passed)[-_HISTORY:]
        meta = {name: one.input.meta for name, one in found.items()}
        self.ahead = rates_ahead(
            self.rates, self._ends(now if clock is None else clock), meta, self.lead, self.forecaster
        )
        self.lasts = {name: one.last for name, one in found.items()}

    def _ends(self, clock: float) -> list[float]:
        """Return the ends of the periods, and the beginning of the first one, back from now: a clock may have been set."""
        return [clock - back for back in accumulate(reversed(self.lengths), initial=0.0)][::-1]

    def table(
        self,
        found: Mapping[str, InputExtent],
        per_row: Mapping[str, float],
        before: Mapping[str, int],
        after: Mapping[str, int],
        readers: Mapping[str, int],
        waiting: Mapping[str, float] | None = None,
    ) -> list[InputMetrics]:
        """Return a row for each input that exists or was read, in the order of names.

        before, after   the inputs' offsets before and after the planned batch
        readers         the reader of each input in the last assignment
        waiting         seconds of event time that wait at inputs after the batch, where they are known
        """
        rows = []
        for name in sorted(found.keys() | after.keys()):
            one = found.get(name)
            place = after.get(name, 0 if one is None else one.first)
            left = 0 if one is None else max(one.last - place, 0)
            rates = self.rates.get(name, ())
            rows.append(
                InputMetrics(
                    input=name,
                    reader=readers.get(name),
                    rate=round(rates[-1], 3) if rates else None,
                    forecast=_rounded(self.ahead.forecasts.get(name)),
                    lag=round(left / per_row.get(name, 1.0)),
                    offset=place,
                    state=_state(one, left, moved=place != before.get(name)),
                    waiting=(waiting or {}).get(name) if left else None,
                    expected=_rounded(self.ahead.expected.get(name)),
                )
            )
        return rows


def _rounded(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)


def _state(one: InputExtent | None, left: int, *, moved: bool) -> str:
    if one is None:
        return "gone"
    if left:
        return "behind"
    return "read" if moved else "silent"


def to_json(rows: list[InputMetrics], decisions: Sequence[Decision[Any]] = ()) -> dict[str, Any]:
    """Return the report as a source's latest offset."""
    return {INPUTS: [row.snapshot() for row in rows], "decisions": [decision.to_json() for decision in decisions]}


def from_json(offset: Any) -> InputReport | None:
    """Return the report in a latest offset; None if the offset is another source's."""
    if not isinstance(offset, dict) or INPUTS not in offset:
        return None
    decisions = tuple(Decision(**decision) for decision in offset["decisions"])
    return InputReport(tuple(InputMetrics.restored(row) for row in offset[INPUTS]), decisions)
