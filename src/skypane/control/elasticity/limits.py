"""Bounds and cadence of elastic workers: one list of fields, for the law that runs and for what a user writes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from skypane.control.workers import Workers
from skypane.types import ConfigError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a policy's proposals are held to; the defaults are those of paper 5, where nothing holds them.

    least_plq, most_plq   bounds of the pane level; least_wlq, most_wlq of the window level; None: as many as there may be
    every                 sampling intervals (micro-batches, on Spark) in a control interval: tens of them let splitting
                          settle first
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
    every: int = 10
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
        if self.every < 1 or self.cooldown < 0 or self.idle < 0 or not 0 <= self.hysteresis < 1:
            raise ConfigError(
                f"need every >= 1, cooldown >= 0, idle >= 0, 0 <= hysteresis < 1, got {self.every}, {self.cooldown}, "
                f"{self.idle}, {self.hysteresis}"
            )

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
