"""The rate that readers and workers must be there for before it comes: of all inputs, within a lead time.

An input counts as in DRF-M (paper 3, section 2.5): for the rate that its meta-data let expect, else for its forecast
X(t+1). Two things differ from the paper. An input never counts for less than its forecast, so that a statement adds
capacity ahead of time and takes none away from rows that come. And changes at known times are a statement, too: the
rates of the past are divided by the factors that were in force, Holt's trend is fitted to the quotients, and the result
is multiplied by the highest factor within the lead time. A factor that turns out to be wrong is so corrected by the rates
that follow it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from skypane.control.admission.expectation import expectation
from skypane.control.admission.forecasting import Forecaster
from skypane.control.admission.metadata import MetaData
from skypane.control.admission.rate_changes import RateSchedule
from skypane.control.admission.strategies import STRATEGIES, StreamLoad
from skypane.policy import Decision
from skypane.types import ConfigError, Duration, FloatArray, Length, micros
from skypane.wording import count

LEAD = "1 minute"
"""Default lead time, in which executors that a cluster grants and their Python workers start."""
_LONGEST = Length(3_600_000_000)
_PERIODS = 3
"""Periods that the lead time has at least: a decision follows the period after the one in which a rate was stated."""
_SHOWN = 3
"""Inputs that the reason names."""

Rates = Mapping[str, Sequence[float]]


def checked_lead(lead: Duration) -> Length:
    """Return a lead time; raise ConfigError if it is negative, or longer than an hour."""
    length = micros(lead, "lead")
    if not 0 <= length <= _LONGEST:
        raise ConfigError(f"lead is the time that workers need to start, at most {_LONGEST.words}, got {lead!r}")
    return length


@dataclass(frozen=True, slots=True)
class RatesAhead:
    """Rates of the inputs in rows per second, by name.

    forecasts  X(t+1), of the inputs that have had a rate
    expected   the rate within the lead time of inputs whose meta-data state one, at least the forecast
    decision   the rate of all inputs, with its reason; None if no meta-data state a rate
    """

    forecasts: Mapping[str, float] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    decision: Decision[float] | None = None

    @property
    def rate(self) -> float:
        """The rate of all inputs."""
        return math.fsum({**self.forecasts, **self.expected}.values())

    @property
    def because(self) -> str:
        """The reason, if statements raise the rate above the forecast; else ""."""
        raised = self.decision is not None and self.rate > math.fsum(self.forecasts.values())
        return self.decision.because if raised and self.decision is not None else ""


class _Stated(NamedTuple):
    """A rate that an input states, and how it is known."""

    rate: float
    because: str


def rates_ahead(
    rates: Rates, ends: Sequence[float], meta: Mapping[str, MetaData], lead: Duration, forecaster: Forecaster
) -> RatesAhead:
    """Return the rates that are forecast, and those that meta-data state for the time from now on.

    rates   of each input in the last periods, oldest first; younger inputs have fewer periods
    ends    when the periods ended, and before them when the first one began, in seconds since the epoch; the last is now
    meta    meta-data of all inputs that exist
    lead    how far the highest rate is looked for, or three periods if that is longer
    """
    soon = _forecast(rates, forecaster)
    within = max(checked_lead(lead) / 1e6, _PERIODS * (ends[-1] - ends[-2]) if len(ends) > 1 else 0.0)
    found = {
        **_by_changes(rates, ends, meta, within, forecaster),
        **_by_characteristics(rates, ends, meta, within, forecaster),
    }
    drf_m = STRATEGIES["DRF-M"]
    expected = {
        name: drf_m.counts(StreamLoad(name, now, now, now, max(stated.rate, now)))
        for name, stated in found.items()
        for now in (soon.get(name, 0.0),)
    }
    known = RatesAhead(soon, expected)
    return replace(known, decision=_decision(known, found, within)) if found else known


def _forecast(rates: Rates, forecaster: Forecaster) -> dict[str, float]:
    ahead = forecaster.forecast(_table(rates), 1)[:, 0] if rates else np.empty(0)
    return {name: rate for name, rate in zip(rates, ahead.tolist(), strict=True) if math.isfinite(rate)}


def _table(rates: Rates) -> FloatArray:
    """Return the rates as (inputs, periods); the rows of younger inputs start with NaN."""
    table = np.full((len(rates), max(map(len, rates.values()), default=0)), np.nan)
    for row, values in zip(table, rates.values(), strict=True):
        if values:
            row[-len(values) :] = values
    return table


def _by_changes(
    rates: Rates, ends: Sequence[float], meta: Mapping[str, MetaData], within: float, forecaster: Forecaster
) -> dict[str, _Stated]:
    """Return the highest rates by changes at known times; a factor of an input without a rate yet gives none."""
    now = ends[-1]
    schedules = {name: one.schedule for name, one in meta.items() if one.schedule.changes}
    plain = {
        name: _divided(rates[name], ends, of) for name, of in schedules.items() if of.is_factor and rates.get(name)
    }
    base = _forecast(plain, forecaster)
    found = {}
    for name, of in schedules.items():
        highest = of.highest(now, now + within)
        unit = base.get(name) if of.is_factor else 1.0
        if highest.value is None or unit is None:
            continue
        when = f"({highest.change}, in {highest.at - now:.0f} s)" if highest.change else "(since its last change)"
        found[name] = _Stated(unit * highest.value, when)
    return found


def _divided(rates: Sequence[float], ends: Sequence[float], schedule: RateSchedule) -> list[float]:
    """Return the rates divided by the factors that were in force."""
    means = schedule.means(ends[-len(rates) - 1 :])
    return [rate / mean for rate, mean in zip(rates, means, strict=True)]


def _by_characteristics(
    rates: Rates, ends: Sequence[float], meta: Mapping[str, MetaData], within: float, forecaster: Forecaster
) -> dict[str, _Stated]:
    """Return the highest rates by the paper's ten characteristics, of inputs without changes at known times."""
    stating = [name for name, one in meta.items() if not one.schedule.changes and one != MetaData()]
    every = (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 and ends[-1] > ends[0] else max(within, 1.0)
    periods = max(1, math.ceil(within / every))
    histories = {name: tuple(rates.get(name, ())) for name in stating}
    ahead = forecaster.forecast(_table(histories), periods) if stating else np.empty((0, periods))
    found = {}
    for name, forecasts in zip(stating, ahead.tolist(), strict=True):
        rate = expectation(meta[name], histories[name], forecasts, every)
        if rate is not None and math.isfinite(rate):
            found[name] = _Stated(rate, "(by its characteristics)")
    return found


def _decision(known: RatesAhead, found: Mapping[str, _Stated], within: float) -> Decision[float]:
    soon = math.fsum(known.forecasts.values())
    order = sorted(found, key=lambda name: (known.forecasts.get(name, 0.0) - known.expected[name], name))
    named = [f"{name} {known.expected[name]:.0f} {found[name].because}" for name in order[:_SHOWN]]
    if len(order) > _SHOWN:
        named.append(f"{count(len(order) - _SHOWN)} more")
    because = (
        f"DRF-M: {known.rate:.0f} rows/s within {within:.0f} s, {soon:.0f} by the forecast alone; {'; '.join(named)}"
    )
    figures = {"forecast": soon, "stated inputs": float(len(found)), "lead": within}
    return Decision("rate", known.rate, because, figures)
