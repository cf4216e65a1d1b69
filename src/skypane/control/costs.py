"""Costs of the operations between which control policies choose, as measured on a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from skypane.types import ConfigError


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of the runtime's operations, in seconds, and the number of keys at which division by keys pays.

    The defaults were measured on two shared cores, local[2]; `skypane calibrate` measures all but one of them again.

    cost                                       where its default was measured
    exchange, exchange_per_row, job            measure/bench/streaming.py
    window, window_per_row                     measure/bench/streaming.py
    compared_per_row                           docs/decisions/08: no more than two merges of the row
    divided_per_row, many_keys                 measure/bench/division.py
    threads, shard_threads                     runtime/spark/calibration.py
    front_per_row, front_per_pair              measure/bench/continuous.py, continuous_stream.py
    group_per_row, shard_per_row               measure/bench/continuous_stream.py

    `many_keys` is not calibrated: near the crossover both ways take equally long, so a measurement would be noise.
    """

    #: exchanging the rows of a batch between tasks: fixed, and for each row (nine columns)
    exchange: float = 0.06
    exchange_per_row: float = 0.35e-6
    #: answering a window: fixed, and for each row that is merged once (eight criteria)
    window: float = 0.8e-3
    window_per_row: float = 0.4e-6
    #: overhead of a Spark job with a Python stage
    job: float = 0.15
    #: a row that a continuous skyline takes: fixed, and for each stored row (five criteria)
    front_per_row: float = 0.1e-6
    front_per_pair: float = 30e-12
    #: a row that one of many small fronts takes
    group_per_row: float = 2.0e-6
    #: a row, stored or new, that is sent to the shards of a front, and its answer
    shard_per_row: float = 0.25e-6
    #: a row that is compared with those before and after it, for all its windows at once (eight criteria)
    compared_per_row: float = 0.8e-6
    #: a row of a partial that a task reads to keep the keys of its part
    divided_per_row: float = 0.06e-6
    #: overhead of windows in threads of the driver, each of which starts without state and writes a file
    threads: float = 0.02
    #: overhead of the shards of a front in threads of the driver, where they stay
    shard_threads: float = 0.002
    #: least number of keys, in rows of a partial, from which all windows are divided by keys: smaller tables fit caches
    #: better, and merges for a window serve the next one, whereas each run of windows starts again
    many_keys: int = 65_536
    #: machine and program of the measurement
    measured: str = "two shared cores, local[2], measure/bench"

    def __post_init__(self) -> None:
        seconds: Mapping[str, Any] = self.in_seconds()
        for name, cost in seconds.items():
            if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
                raise ConfigError(f"costs: {name} must be seconds >= 0, got {cost!r}; measure it again")
        if type(self.many_keys) is not int or self.many_keys < 1:
            raise ConfigError(f"costs: many_keys must be a number of rows >= 1, got {self.many_keys!r}")

    def in_seconds(self) -> dict[str, float]:
        """Return the costs that are seconds, by name."""
        return {name: value for name, value in self.to_json().items() if name not in {"many_keys", "measured"}}

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
