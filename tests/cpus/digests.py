"""What policies decide and queries answer on drawn inputs, as a digest each: `python -m tests.cpus.digests` prints them as JSON.

Inputs are drawn by integers and by uniform numbers, times and ratios of which are exact or rounded the same way everywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import skypane as sp
from skypane.control.admission.expectation import expectation
from skypane.control.admission.forecasting import HoltForecaster
from skypane.control.admission.metadata import MetaData
from skypane.control.admission.readers import ReadersState
from skypane.control.costs import DEFAULT_COSTS
from skypane.control.elasticity.fuzzy import AS_RUN, PROMPT, FuzzyController
from skypane.control.exchange import DEFAULT_GROWTH
from skypane.control.fitting import Timing, fit
from skypane.control.measurements import BatchMeasurements, PieceWork
from skypane.control.monitoring import SamplingPeriod
from skypane.control.placement import DueWindows, PlacementChoice
from skypane.control.predictions import ExpectedBatch, SourceFigures, SourceSpread, SplittingOption, predict
from skypane.control.splitting import AdaptiveSplitting, PidSplitting, SplittingSample, UpcomingBatch
from skypane.control.window_division import WindowDivision, WindowsToDivide
from skypane.control.window_work import DueRuns, WindowSize
from skypane.kernels.batch_skyline import skyline_indices
from skypane.kernels.grouped_skyline import skyline_indices_by_group
from skypane.kernels.kdominance import dominance_factors, k_dominant_indices, top_delta_indices
from skypane.operators.fronts.continuous_skyline import ContinuousSkyline
from skypane.operators.query import Query
from skypane.plan import ContinuousPlan, Plan
from skypane.preference import Score, parse
from skypane.progress import AqKSlack, KSlack, PaneArrivals, ProgressPolicy, Readiness, Watermark
from skypane.runtime import local
from skypane.windows import Windows
from skypane_papers.multiway import Aggregation, ColumnarTuMLSC, TuMLSC

Parts = Iterator[Any]
SECOND = 1_000_000
SCORES = (
    "log(a)", "exp(b)", "a ** b", "a ** 2", "a ** 0.5", "a ** -1.5", "2 ** b", "sqrt(a)", "a / b", "log(a) * exp(-b) - a ** 0.3",
    "log(a * a) - 2 * log(a)", "min(log(a), exp(b), a)", "(-a) ** (c * 1e18)",
)  # fmt: skip


def fuzzy(rng: np.random.Generator) -> Parts:
    tenths = np.arange(1, 26) / 10
    grid = np.stack(np.meshgrid(tenths, np.arange(2, 12) / 2, tenths), axis=-1).reshape(-1, 3)
    drawn = rng.random((5_000, 3)) * [2.0, 6.0, 2.0]
    rho1, sigma, rho2 = np.concatenate([grid, drawn]).T
    for controller in (FuzzyController(), FuzzyController(accumulation="maximum"), PROMPT, AS_RUN):
        yield controller.infer(rho1, sigma, rho2, np.array(60))
        for n, m in ((1, 1), (2, 3), (10, 1), (40, 19)):
            yield controller.decide(rho1, sigma, rho2, n, m, 60)
    yield FuzzyController().decide(0.8, 1.0, 1.1, 10, 1, 60)


def elasticity(rng: np.random.Generator) -> Parts:
    for peak, percent in rng.random((300, 2)).tolist():
        meta = MetaData(min=1.0, burst_peak=10 + 90 * peak, burst_percent=5 + 90 * percent, period="100 seconds")
        yield expectation(meta, [20.0 * peak, 50.0 * percent], [1.0] * 3, 7.0)
    for _ in range(50):
        yield fit(list(timings(rng)), "here")
    everywhere = SplittingOption("TB_RR", 500_000, (2,) * 100)
    expected = ExpectedBatch(dict.fromkeys(range(100), 10_000), 2, (everywhere,))
    for busy, merging in rng.random((300, 2)).tolist():
        spread = SourceSpread(1_000_000, (busy, 0.1), (10_000,) * 100, 100 + int(900 * merging), merging, 2)
        figures = SourceFigures.of(spread, DEFAULT_COSTS, DEFAULT_GROWTH)
        yield predict(figures, expected, DEFAULT_COSTS, DEFAULT_GROWTH)
        yield ReadersState(3, tuple(rng.random(9).tolist()), 0, tuple((1 + 9 * rng.random(9)).tolist())).cost
    yield HoltForecaster().forecast(rng.random((40, 30)) * 1_000, 5)


def timings(rng: np.random.Generator) -> Iterator[Timing]:
    yield Timing("job", 1, 0, rng.random())
    yield Timing("threads", 1, 0, rng.random())
    yield Timing("shard threads", 1, 0, rng.random())
    for move in ("exchange", "window", "front", "group", "shard", "comparison", "division"):
        for rows in (1_000, 10_000, 100_000):
            yield Timing(move, 3, rows, 0.01 * rng.random() + rows * 1e-6 * rng.random())


def splitting(rng: np.random.Generator) -> Parts:
    for policy in (AdaptiveSplitting(), PidSplitting()):
        state: Any = policy.init()
        for number in range(200):
            sizes = tuple(rng.integers(1, 2_000, 9).tolist())
            period = SamplingPeriod(1.0, tuple(rng.random(4).tolist()), sizes[:4], sizes[4:8], 3, 9)
            state = policy.observe(state, SplittingSample(period, sizes))
            state, decision = policy.decide(state, UpcomingBatch({number: int(rng.integers(1, 9_000))}, 4))
            yield decision.value, decision.figures


def division(rng: np.random.Generator) -> Parts:
    policy = WindowDivision()
    state = policy.init()
    for _ in range(100):
        sizes = tuple(WindowSize(rows, rows // 3) for rows in rng.integers(1, 100_000, 12).tolist())
        due = DueWindows(12, 1_000_000, 3, 4, keys=int(rng.integers(0, 2)))
        state, decision = policy.decide(state, WindowsToDivide(sizes, due, PlacementChoice("spark", 4), DEFAULT_COSTS))
        yield decision.value, decision.figures
        work = (DueRuns(sizes).work(one.begin, one.end, one.parts) for one in decision.value.pieces)
        pieces = tuple(
            PieceWork(one.begin, one.end, one.part, counts, rng.random())
            for one, counts in zip(decision.value.pieces, work, strict=True)
        )
        state = policy.observe(state, BatchMeasurements((), 0.1, 1.0, exchanged=False, pieces=pieces))
        yield policy.snapshot(state)


def progress(rng: np.random.Generator) -> Parts:
    policies: tuple[ProgressPolicy, ...] = (
        AqKSlack(0.01),
        AqKSlack(0.05),
        KSlack(),
        Watermark("3 seconds"),
        Readiness("1 minute"),
    )
    late = np.where(rng.random(60_000) < 0.2, 0.05 / (rng.random(60_000) + 1e-4), 0.0)
    times = np.arange(60_000) * 10_000 - (late * SECOND).astype(np.int64)
    for policy in policies:
        state: Any = policy.init()
        for start in range(0, len(times), 150):
            state = policy.decide(state, PaneArrivals.at_once(times[start : start + 150], Windows(SECOND, SECOND)))[0]
            yield state.punctuation, policy.snapshot(state) if start % 15_000 == 0 else None


def table(rng: np.random.Generator, rows: int) -> pa.Table:
    times = np.sort(rng.integers(0, 60 * SECOND, rows)) - np.where(rng.random(rows) < 0.1, 2 * SECOND, 0)
    wide = (rng.random(rows) - 0.5) / (rng.random(rows) * rng.random(rows) + 1e-9)
    columns: dict[str, Any] = {
        "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "key": pa.array([f"k{key}" for key in rng.integers(0, 6, rows).tolist()]),
        "a": rng.random(rows) * 1_000 + 1e-3,
        "b": (rng.random(rows) - 0.3) * 8,
        "c": rng.integers(0, 40, rows),
        "d": rng.integers(0, 12, rows) / 4,
        "wide": wide,
    }
    return pa.table(columns)


def preference(rng: np.random.Generator) -> Parts:
    rows = table(rng, 20_000)
    for score in SCORES:
        yield Score(score).values(rows)
    for wanted in (parse("a MIN, b MAX, c MIN"), sp.around("a", 500) * sp.low("d"), sp.low("a") & sp.high("b")):
        yield wanted.best(rows)


def queries(rng: np.random.Generator) -> Parts:
    all_queries: tuple[Query, ...] = (
        sp.Skyline("a MIN, b MAX, c MIN, d MAX", by="key"),
        sp.TopK(5, "log(a) * exp(b / 10) - d ** 0.3", by="key"),
        sp.KDominant(3, "a MIN, b MAX, c MIN, d MAX"),
        sp.TopDelta(7, "a MIN, b MAX, c MIN, d MAX"),
    )
    rows, windows = table(rng, 6_000), Windows.of("10 seconds", "2 seconds", "0 seconds")
    batches = [rows.slice(start, 500) for start in range(0, rows.num_rows, 500)]
    for query in all_queries:
        yield from answers(Plan(query, windows, "ts", AqKSlack(0.02)), batches)
    front = ContinuousSkyline("a MIN, b MAX, c MIN", "ts", 5 * SECOND)
    plan = ContinuousPlan(front, Windows.of("2 seconds", "2 seconds", "0 seconds"), "ts", KSlack())
    yield from (outcome.rows for outcome in local.run_continuous(plan, batches[:4]))


def aggregates(rng: np.random.Generator) -> Parts:
    functions = {f"{name}_{column}": getattr(sp, name)(column)
                 for name in ("sum", "avg", "variance", "var_pop", "stddev", "stddev_pop", "min", "max")
                 for column in ("a", "c", "wide")}  # fmt: skip
    query = sp.Aggregate(
        "key",
        n=sp.count(),
        some=sp.approx_count_distinct("a", error=0.05),
        middle=sp.approx_quantile("wide", [0.01, 0.5, 0.99]),
        fine=sp.approx_quantile("a", 0.9, error=0.001),
        **functions,
    )
    rows = table(rng, 20_000)
    batches = [rows.slice(start, 4_000) for start in range(0, rows.num_rows, 4_000)]
    yield from answers(Plan(query, Windows.of("10 seconds", "5 seconds", "0 seconds"), "ts", KSlack()), batches)


def answers(plan: Plan, batches: list[pa.Table]) -> Parts:
    return ((answer.window, answer.rows) for answer in local.answers(plan, [*batches, local.Drain()]))


def kernels(rng: np.random.Generator) -> Parts:
    for d in (1, 2, 3, 5, 8):
        for points in (
            rng.random((4_000, d)),
            rng.integers(0, 9, (4_000, d)) / 8,
            rng.random((4_000, d)) * rng.random((4_000, 1)),
        ):
            yield skyline_indices(points)
            yield skyline_indices_by_group(points, rng.integers(0, 50, 4_000))
            if d > 2:
                yield (
                    k_dominant_indices(points[:500], d - 1),
                    top_delta_indices(points[:500], 9),
                    dominance_factors(points[:500]),
                )


def multiway(rng: np.random.Generator) -> Parts:
    for make in (TuMLSC, ColumnarTuMLSC):
        design: Any = make(2, Aggregation(30, 7, "avg", keys=20))
        for source in range(2):
            times = np.cumsum(rng.integers(0, 3, 800))
            assert design.add(source, times, rng.integers(0, 20, 800), rng.integers(-99, 99, 800)) == 800
            design.leave(source)
        while (found := design.next_winset()) is not None:
            yield found.sorted()


PARTS: dict[str, Callable[[np.random.Generator], Parts]] = {
    part.__name__: part
    for part in (fuzzy, elasticity, splitting, division, progress, preference, queries, aggregates, kernels, multiway)
}


def digest(parts: Parts) -> str:
    """Return a digest of values, to the last bit."""
    found = hashlib.sha256()
    for part in parts:
        found.update(plain(part).encode())
    return found.hexdigest()[:16]


def plain(value: Any) -> str:
    """Return a text that differs where a bit of the value does."""
    match value:
        case np.ndarray():
            return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
        case pa.Table():
            return repr(value.to_pydict())
        case tuple() | list():
            return "".join(map(plain, value))
    return repr(value)


if __name__ == "__main__":
    print(json.dumps({name: digest(part(np.random.default_rng(7))) for name, part in PARTS.items()}))
