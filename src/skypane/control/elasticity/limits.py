"""Bounds and cadence of elastic workers: one list of fields, for the law that runs and for what a user writes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final, TypeAlias

from skypane.control.workers import Workers
from skypane.types import ConfigError, Duration, Length, micros

TIMES: Final = (str, timedelta, Length)
"""The types of a length of time; a number counts."""

Cadence: TypeAlias = "int | Duration"
"""So many sampling intervals, or a length of time."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a policy's proposals are held to; the defaults are those of paper 5, where nothing holds them.

    least_plq, most_plq   bounds of the pane level; least_wlq, most_wlq of the window level; None: as many as there may be
    every                 how long a control interval is: so many sampling intervals (micro-batches, on Spark), or a
                          time, "2.5 s", after which the next sampling interval ends it; tens of them let splitting
                          settle first
    catch_up              what waits is to be worked off within this time, or a control interval that is longer: so much
                          more is a stage utilised. None: rho is that of what came alone
    hysteresis            a change of a stage by a smaller share of its workers is not made
    cooldown              control intervals in which none are taken away after a change; more come at any time
    idle                  control intervals after which workers that got no work are taken away; none are added beside
                          one that has nothing to do. 0: they count as if they worked
    dry_run               decisions are told, and not made
    """

    least_plq: int = 1
    most_plq: int | None = None
    least_wlq: int = 1
    most_wlq: int | None = None
    every: Cadence = 10
    catch_up: Duration | None = None
    hysteresis: float = 0.0
    cooldown: int = 0
    idle: int = 0
    dry_run: bool = False

    def check(self, most: int) -> None:
        """Raise ConfigError if these limits cannot be kept with `most` workers for both stages."""
        if most < 2:
            raise ConfigError(f"max_workers must be at least 2, one for each stage, got {most}")
        for stage in ("plq", "wlq"):
            low, high = self.bounds(stage, most)
            if not 1 <= low <= high <= most:
                raise ConfigError(f"need 1 <= least_{stage} <= most_{stage} <= {most}, got {low} and {high}")
        if self.least_plq + self.least_wlq > most:
            raise ConfigError(f"the least of both stages, {self.least_plq} + {self.least_wlq}, exceeds {most}")
        intervals, seconds = self.cadence
        if intervals < 1 or seconds < 0 or self.cooldown < 0 or self.idle < 0 or not 0 <= self.hysteresis < 1:
            raise ConfigError(
                f"need every >= 1, cooldown >= 0, idle >= 0, 0 <= hysteresis < 1, got {self.every}, {self.cooldown}, "
                f"{self.idle}, {self.hysteresis}"
            )
        if self.catch_up is not None and micros(self.catch_up, "catch_up") <= 0:
            raise ConfigError(f"catch_up must be longer than nothing, got {self.catch_up!r}")

    @property
    def cadence(self) -> tuple[int, float]:
        """The sampling intervals and the seconds after which a control interval ends: the later of both."""
        if isinstance(self.every, TIMES):
            return 1, micros(self.every, "every") / 1e6
        return self.every, 0.0

    def bounds(self, stage: str, most: int) -> tuple[int, int]:
        """Return the least and the most workers of a stage, "plq" or "wlq"."""
        high = getattr(self, f"most_{stage}")
        return getattr(self, f"least_{stage}"), most if high is None else high

    def bounded(self, workers: Workers, most: int) -> Workers:
        """Return workers within the bounds of each stage and of both."""
        (low_plq, high_plq), (low_wlq, high_wlq) = self.bounds("plq", most), self.bounds("wlq", most)
        plq = min(max(workers.plq, low_plq), high_plq, most - low_wlq)
        return Workers(plq, min(max(workers.wlq, low_wlq), high_wlq, most - plq))

    def limits(self) -> dict[str, Any]:
        """Return these fields by name, for another that takes them."""
        return {item.name: getattr(self, item.name) for item in fields(Limits)}
