"""Options for elastic=: the policy that sets the numbers of workers, its bounds and its cadence.

    Fuzzy(max_workers=16)                      twelve rules of fuzzy logic (paper 5), without parameters to tune
    Model(max_workers=16, latency="2 s")       forecast of the rate x measured cost (paper 3)
    Threshold(max_workers=16, target=0.8)      utilisation at a target, as cluster managers do

scaling() returns the control policy that the engine and the simulator run. registry.py lists the options.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from skypane.control.elasticity.elastic import Elastic
from skypane.control.elasticity.forecasting_policy import ModelPolicy
from skypane.control.elasticity.fuzzy import PROMPT, FuzzyController
from skypane.control.elasticity.fuzzy_policy import FuzzyPolicy
from skypane.control.elasticity.limits import TIMES, ScalingLimits
from skypane.control.elasticity.situation import ScalingPolicy, Situation
from skypane.control.elasticity.threshold import ThresholdPolicy
from skypane.control.parallelism import Workers
from skypane.policy import Decision
from skypane.types import Cadence, ConfigError, Duration, truth

Executors = Literal["follow"]
"""The ways in which executors may depend on elastic=."""


@dataclass(frozen=True, kw_only=True)
class Elasticity(ScalingLimits, ScalingPolicy):
    """Base class of the options: ScalingLimits with defaults for a stream.

    max_workers   workers of both stages together, at least 2; the default is twice the default parallelism, because on
                  Spark the stages run one after the other on the same cores
    executors     "follow": executors are requested and released, so that all tasks of a stage run at once; None:
                  Spark's settings alone decide on them
    """

    max_workers: int | None = None
    executors: Executors | None = None
    every: Cadence = "2.5 seconds"
    catch_up: Duration | None = "5 seconds"
    cooldown: int = 1
    idle_timeout: int = 6

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.name = cls.__name__.lower()

    def __post_init__(self) -> None:
        if self.executors not in (None, *get_args(Executors)):
            raise ConfigError(f'executors must be "follow" or None, got {self.executors!r}')
        object.__setattr__(self, "dry_run", truth(self.dry_run, "dry_run"))
        self.scaling(Workers(1, 1))  # raises ConfigError on invalid values

    def __str__(self) -> str:
        """Return the option as a call without default values."""
        ordered = sorted(fields(self), key=lambda item: item.name != "max_workers")
        given = (f"{item.name}={getattr(self, item.name)!r}" for item in ordered
                 if item.repr and getattr(self, item.name) != item.default)  # fmt: skip
        return f"{type(self).__name__}({', '.join(given)})"

    @property
    def policy(self) -> ScalingPolicy:
        """The policy that proposes numbers of workers: an own one, or the option itself if it has propose()."""
        return self

    def propose(self, situation: Situation, max_workers: int) -> Decision[Workers]:
        """Return the proposal of the option's policy; see ScalingPolicy.propose()."""
        if self.policy is self:
            raise NotImplementedError(f"{type(self).__name__} needs a method propose(), or a policy")
        return self.policy.propose(situation, max_workers)

    def scaling(self, start: Workers, parallelism: int = 1) -> Elastic:
        """Return the control policy that starts with these workers, cut to the bounds."""
        return Elastic(self.policy, self._most(parallelism), start, **self.limits())

    def _whole(self) -> dict[str, Any]:
        counts = {"max_workers": self.max_workers, **self.limits()}
        timed = {"hysteresis", "dry_run", "catch_up"} | ({"every"} if isinstance(self.every, TIMES) else set())
        return {name: value for name, value in counts.items() if name not in timed}

    def _most(self, parallelism: int) -> int:
        for value in self._whole().values():
            if value is not None and type(value) is not int:
                raise ConfigError(
                    f"elastic: numbers of workers and of intervals must be whole numbers, got {value!r} in {self}"
                )
        if self.max_workers is not None:
            return self.max_workers
        plq, wlq = (max(low, high or 0, parallelism) for low, high in
                    ((self.min_plq, self.max_plq), (self.min_wlq, self.max_wlq)))  # fmt: skip
        return plq + wlq


@dataclass(frozen=True, kw_only=True)
class Fuzzy(Elasticity):
    """Workers by the fuzzy controller of paper 5, section 4.2; controller=FuzzyController() is exactly the paper's.

    >>> elastic = sp.Fuzzy(max_plq=4, max_wlq=2)
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", elastic=elastic
    ... )
    """

    controller: FuzzyController = field(default=PROMPT, repr=False)

    @property
    def policy(self) -> ScalingPolicy:
        return FuzzyPolicy(self.controller)


@dataclass(frozen=True, kw_only=True)
class Model(Elasticity):
    """Workers by the model of paper 3, equations 1a and 1b.

    It also adds workers for rates that inputs state for a time to come (`meta`), before their rows come.

    latency    time within which the backlog is processed
    headroom   H, the share of a worker that stays free

    >>> elastic = sp.Model(latency="5 seconds", max_plq=4)
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", elastic=elastic
    ... )
    """

    latency: Duration = "2 seconds"
    headroom: float = 0.1

    @property
    def policy(self) -> ScalingPolicy:
        return ModelPolicy(self.headroom, self.latency)


@dataclass(frozen=True, kw_only=True)
class Threshold(Elasticity):
    """Workers that keep utilisation at a target; no change while it is within `tolerance` (a share) of the target.

    >>> elastic = sp.Threshold(target=0.7, max_plq=4)
    >>> job = sp.stream(
    ...     arriving, "price MIN", time="ts", window="1 hour", checkpoint="state", output="best", elastic=elastic
    ... )
    """

    #: utilisation of the workers, between 0 and 1
    target: float = 0.8
    #: distance from the target within which nothing changes
    tolerance: float = 0.1

    @property
    def policy(self) -> ScalingPolicy:
        return ThresholdPolicy(self.target, self.tolerance)
