"""Costs, in seconds, of the operations between which control policies choose, as measured on a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of the runtime's operations, in seconds.

    exchange, exchange_per_row   exchanging the rows of a batch between tasks: fixed, and for each row (nine columns)
    window, window_per_row       answering a window: fixed, and for each row that is merged once (eight criteria)
    front_per_row, front_per_pair
                                 a row that a continuous skyline takes: fixed, and for each stored row (five criteria)
    group_per_row                a row that one of many small fronts takes
    shard_per_row                a row, stored or new, that is sent to the shards of a front, and its answer
    job                          overhead of a Spark job with a Python stage
    measured                     machine and program of the measurement
    """

    exchange: float = 0.06
    exchange_per_row: float = 0.35e-6
    window: float = 0.8e-3
    window_per_row: float = 0.4e-6
    job: float = 0.15
    front_per_row: float = 0.1e-6
    front_per_pair: float = 30e-12
    group_per_row: float = 2.0e-6
    shard_per_row: float = 0.25e-6
    measured: str = "two shared cores, local[2], measure/bench/streaming.py"

    def __post_init__(self) -> None:
        for name in (item.name for item in fields(self) if item.name != "measured"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
                raise ConfigError(f"costs: {name} must be seconds >= 0, got {seconds!r}; measure it again")

    def exchanging(self, row_count: int) -> float:
        """Return the seconds of an exchange of `row_count` rows."""
        return self.exchange + self.exchange_per_row * row_count

    def to_json(self) -> dict[str, Any]:
        """Return the costs as a JSON object."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the costs that to_json() wrote; missing ones have their defaults."""
        unknown = sorted(set(value) - {item.name for item in fields(cls)})
        if unknown:
            raise ConfigError(f"costs: unknown {', '.join(unknown)}; known are {[item.name for item in fields(cls)]}")
        return cls(**value)


DEFAULT_COSTS: Final = Costs()
