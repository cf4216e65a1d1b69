"""Bounds and cadence of elastic workers: fields shared by the running policy and the options of users."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Final

from skypane.control.parallelism import Workers
from skypane.types import Cadence, ConfigError, Duration, Length, micros

TIMES: Final = (str, timedelta, Length)
"""Types of a duration; a number is a count of intervals."""


@dataclass(frozen=True, kw_only=True)
class ScalingLimits:
    """Limits of a policy's proposals; the defaults are those of paper 5, which has no limits.

    min_plq, max_plq   bounds of the pane level; max_plq None: up to the common limit
    min_wlq, max_wlq   bounds of the window level; max_wlq None: up to the common limit
    every                 length of a control interval: a number of sampling intervals (micro-batches on Spark), or a
                          duration such as "2.5 s", after which it ends with the next sampling interval; tens of
                          sampling intervals let splitting settle first
    catch_up              time within which the backlog is to be processed, or the control interval if that is longer;
                          the backlog adds to the utilisation accordingly. None: rho counts arriving tuples only
    hysteresis            least change of a stage that is made, as a share of its workers
    cooldown              control intervals after a change in which no workers are removed; they are added at any time
    idle_timeout          control intervals after which workers without work are removed; while a stage has a worker
                          without work, none are added to it. 0: workers without work are ignored
    dry_run               report decisions without applying them
    """

    min_plq: int = 1
    max_plq: int | None = None
    min_wlq: int = 1
    max_wlq: int | None = None
    every: Cadence = 10
    catch_up: Duration | None = None
    hysteresis: float = 0.0
    cooldown: int = 0
    idle_timeout: int = 0
    dry_run: bool = False

    def check(self, max_workers: int) -> None:
        """Raise ConfigError if these limits are impossible with `max_workers` workers for both stages."""
        if max_workers < 2:
            raise ConfigError(f"max_workers must be at least 2, one for each stage, got {max_workers}")
        for stage in ("plq", "wlq"):
            low, high = self.bounds(stage, max_workers)
            if not 1 <= low <= high <= max_workers:
                raise ConfigError(f"need 1 <= min_{stage} <= max_{stage} <= {max_workers}, got {low} and {high}")
        if self.min_plq + self.min_wlq > max_workers:
            raise ConfigError(f"the least of both stages, {self.min_plq} + {self.min_wlq}, exceeds {max_workers}")
        intervals, seconds = self.cadence
        if intervals < 1 or seconds < 0 or self.cooldown < 0 or self.idle_timeout < 0 or not 0 <= self.hysteresis < 1:
            raise ConfigError(
                f"need every >= 1, cooldown >= 0, idle_timeout >= 0, 0 <= hysteresis < 1, got {self.every}, {self.cooldown}, "
                f"{self.idle_timeout}, {self.hysteresis}"
            )
        if self.catch_up is not None and micros(self.catch_up, "catch_up") <= 0:
            raise ConfigError(f"catch_up must be longer than 0, got {self.catch_up!r}")

    @property
    def cadence(self) -> tuple[int, float]:
        """Least sampling intervals and least seconds of a control interval."""
        if isinstance(self.every, TIMES):
            return 1, micros(self.every, "every") / 1e6
        return self.every, 0.0

    def bounds(self, stage: str, max_workers: int) -> tuple[int, int]:
        """Return the smallest and the largest number of workers of a stage, "plq" or "wlq"."""
        high = getattr(self, f"max_{stage}")
        return getattr(self, f"min_{stage}"), max_workers if high is None else high

    def bounded(self, workers: Workers, max_workers: int) -> Workers:
        """Return workers cut to the bounds of each stage and of both."""
        (low_plq, high_plq), (low_wlq, high_wlq) = self.bounds("plq", max_workers), self.bounds("wlq", max_workers)
        plq = min(max(workers.plq, low_plq), high_plq, max_workers - low_wlq)
        return Workers(plq, min(max(workers.wlq, low_wlq), high_wlq, max_workers - plq))

    def limits(self) -> dict[str, Any]:
        """Return the fields of ScalingLimits by name."""
        return {item.name: getattr(self, item.name) for item in fields(ScalingLimits)}
