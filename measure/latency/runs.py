"""The settings and policies of the latency experiment (paper 1, section 6.2, figure 17, on our own streams)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from measure.latency.lateness import Batches, LateStream, Trace, WindowTimes, run, run_tuple_grain, window_times
from skypane.datasets.flights import departures
from skypane.progress import AqKSlack, KSlack, ProgressPolicy, Watermark
from skypane.types import Duration, Micros, micros
from skypane.windows import Windows

BUDGETS = (0.01, 0.02, 0.05)
_HOUR, _SECOND = 3_600_000_000, 1_000_000


@dataclass(frozen=True)
class Experiment:
    """One stream, cut into batches and asked for windows."""

    title: str
    stream: LateStream
    windows: Windows
    batch: Micros
    #: Fixed delays to compare with.
    watermarks: Sequence[Duration]
    #: Rows that a policy may learn from before its drop ratio is judged.
    warm_up: int
    unit: tuple[str, Micros]


@dataclass(frozen=True, eq=False)
class Result:
    """What one policy did in one experiment."""

    name: str
    budget: float | None
    trace: Trace
    times: WindowTimes

    @property
    def mean_latency(self) -> float:
        """Mean window latency in microseconds."""
        return float(self.times.latency.mean())


def flights(title: str, windows: Windows) -> Experiment:
    """Return the flights in batches of ten minutes."""
    table = departures()
    event, arrival = (table[name].cast("int64").to_numpy() for name in ("scheduled", "departed"))
    return Experiment(
        title, LateStream(event, arrival), windows, micros("10 minutes"), ("1 hour", "3 hours"), 10_000, ("h", _HOUR)
    )


def heavy_tailed(title: str, windows: Windows, rows: int = 200_000, seed: int = 7) -> Experiment:
    """Return 1,000 tuples per second whose delays have no variance (Pareto, shape 1.2, scale 0.1 s).

    The stream is cut at the last tuple sent, as one that goes on would be seen.
    """
    rng = np.random.default_rng(seed)
    event = np.cumsum(rng.exponential(0.001 * _SECOND, rows)).astype(np.int64)
    arrival = event + (rng.pareto(1.2, rows) * 0.1 * _SECOND).astype(np.int64)
    seen = arrival <= event[-1]
    stream = LateStream.of(event[seen], arrival[seen])
    return Experiment(title, stream, windows, micros("500 ms"), ("1 second", "5 seconds"), 10_000, ("s", _SECOND))


def results(experiment: Experiment) -> list[Result]:
    """Measure every policy, K-slack first; each on the windows that end before any policy's last punctuation."""
    contestants = list(_results(experiment))
    end = min(int(result.trace.punctuation[-1]) for result in contestants)
    return [replace(result, times=result.times.before(end)) for result in contestants]


def _results(experiment: Experiment) -> Iterator[Result]:
    batches = Batches.of(experiment.stream, experiment.windows, experiment.batch)
    for name, policy in _policies(experiment):
        yield _result(name, policy.drop_budget, experiment, run(policy, batches))
    by_tuple = run_tuple_grain(experiment.stream, experiment.windows)
    yield _result("K-slack, tuple by tuple", None, experiment, by_tuple)


def _policies(experiment: Experiment) -> Iterator[tuple[str, ProgressPolicy]]:
    yield "`KSlack()`", KSlack()
    for delay in experiment.watermarks:
        yield f'`Watermark("{delay}")`', Watermark(delay)
    for budget in BUDGETS:
        yield f"`AqKSlack({budget})`", AqKSlack(budget)


def _result(name: str, budget: float | None, experiment: Experiment, trace: Trace) -> Result:
    return Result(name, budget, trace, window_times(experiment.stream, experiment.windows, trace))


def settings() -> list[Experiment]:
    """Return what the document shows."""
    return [
        flights("Flights, windows of 10 minutes every 10 minutes", Windows.of("10 minutes")),
        flights("Flights, windows of 24 hours every hour", Windows.of("24 hours", "1 hour")),
        heavy_tailed("Pareto delays, windows of 1 s every 0.2 s", Windows.of("1 second", "200 ms")),
    ]
