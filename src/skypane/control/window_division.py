"""Divide the windows of a batch among tasks, so that the longest task is short (WIN_FB at the grain of runs).

A piece is a run of consecutive windows, or one of several parts of its keys; each run has its own number of parts. The
candidates are

    runs      the division into at most as many pieces as workers whose longest piece is predicted to be shortest
    bundles   more and shorter pieces, the longest first to the task with the least predicted work
    fixed     runs of about equal numbers of rows, all with the same number of parts

and the first two are taken only if they are predicted to be clearly better than the last.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from itertools import accumulate
from typing import Any, Final, NamedTuple

from skypane.control.costs import Costs
from skypane.control.measurements import BatchMeasurements
from skypane.control.placement import DueWindows, PlacementChoice
from skypane.control.window_costs import LearnedWindows, calibrated, figures_of, learned, observed
from skypane.control.window_work import DueRuns, WindowCosts, WindowSize
from skypane.policy import Decision, Policy

BETTER: Final = 0.95
"""Predicted seconds of the longest task, as a share of those of fixed runs, up to which another division is taken:
predictions are not exact, and the best of several is better by luck."""
SHORTER: Final = (0.95, 0.9, 0.85, 0.8, 0.75, 0.65, 0.5, 0.35, 0.25)
"""Longest pieces, as shares of that with a piece for each worker, of which tasks are bundled."""
MOST_PIECES: Final = 4
"""Pieces for each worker, up to which tasks are bundled of them: each writes a file."""
EVEN: Final = 1.03
"""Seconds of the longest piece, as a multiple of those of equal shares, up to which nothing is bundled."""
_PARTS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_STEPS: Final = 40
_EXACT: Final = 1e-3
"""Share of the longest piece to which it is made shorter."""
_ROUNDING: Final = 1 + 1e-9


class Piece(NamedTuple):
    """Part `part` of `parts` of the keys of the windows [begin, end)."""

    begin: int
    end: int
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Division:
    """The pieces of each task."""

    tasks: tuple[tuple[Piece, ...], ...]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces, task by task."""
        return tuple(piece for task in self.tasks for piece in task)

    def snapshot(self) -> dict[str, int]:
        """Return the numbers of tasks, runs, and parts of a run at most, for the metrics."""
        pieces = self.pieces
        return {
            "tasks": len(self.tasks),
            "runs": sum(piece.part == 0 for piece in pieces),
            "parts": max((piece.parts for piece in pieces), default=0),
        }

    @classmethod
    def of_pieces(cls, pieces: Iterable[Piece]) -> Division:
        """Return the division with a task for each piece."""
        return cls(tuple((piece,) for piece in pieces))


@dataclass(frozen=True, slots=True)
class WindowsToDivide:
    """The windows of a batch.

    sizes   their sizes, in order
    due     what is known of them all
    place   how they are divided if nothing is known of what they cost
    costs   calibrated costs
    """

    sizes: tuple[WindowSize, ...]
    due: DueWindows
    place: PlacementChoice
    costs: Costs


@dataclass(frozen=True, slots=True)
class WindowDivision(Policy[LearnedWindows, BatchMeasurements, WindowsToDivide, Division]):
    """Decides the tasks of windows by what the runs of the last batches took."""

    State = LearnedWindows

    def init(self) -> LearnedWindows:
        return LearnedWindows()

    def observe(self, state: LearnedWindows, measured: BatchMeasurements) -> LearnedWindows:
        return observed(state, measured)

    def decide(self, state: LearnedWindows, known: WindowsToDivide) -> tuple[LearnedWindows, Decision[Division]]:
        fixed = fixed_division(known.sizes, known.place.runs, known.place.parts)
        if not state.runs:
            because = f"{_named(fixed)} of about equal rows: no run has been measured yet"
            return state, Decision("windows", fixed, because)
        base = calibrated(known.costs, known.due.overlap, compared_once=known.due.compared_once)
        return state, chosen(DueRuns(known.sizes), learned(state, base), known.due, fixed)


def chosen(runs: DueRuns, costs: WindowCosts, due: DueWindows, fixed: Division) -> Decision[Division]:
    """Return the division whose longest task is predicted to be shortest; `fixed`, unless it is clearly better."""
    expected = longest(fixed, runs, costs)
    best = min(_candidates(runs, costs, due, fixed, expected), key=lambda one: longest(one, runs, costs), default=fixed)
    seconds = longest(best, runs, costs)
    figures = {"fixed": expected, "best": seconds, **figures_of(costs)}
    if seconds > BETTER * expected:
        because = f"{_named(fixed)} of about equal rows: longest {expected * 1e3:.0f} ms, at best {seconds * 1e3:.0f}"
        return Decision("windows", fixed, because, figures)
    because = f"{_named(best)}: longest {seconds * 1e3:.0f} ms, with about equal rows {expected * 1e3:.0f}"
    return Decision("windows", best, because, figures)


def fixed_division(sizes: Sequence[WindowSize], runs: int, parts: int = 1) -> Division:
    """Return at most `runs` runs with about equal numbers of rows to merge, each in `parts` parts."""
    weights = [size.rows + 1 for size in sizes]
    total, before = sum(weights), accumulate(weights, initial=0)
    numbers = [
        min(runs - 1, (done + weight // 2) * runs // total) for weight, done in zip(weights, before, strict=False)
    ]
    edges = [at for at in range(len(sizes)) if at == 0 or numbers[at] != numbers[at - 1]]
    ranges = zip(edges, [*edges[1:], len(sizes)], strict=True) if edges else ()
    return Division.of_pieces(Piece(begin, end, part, parts) for begin, end in ranges for part in range(parts))


def seconds_of(piece: Piece, runs: DueRuns, costs: WindowCosts) -> float:
    """Return the predicted seconds of a piece."""
    return costs.seconds(runs.work(piece.begin, piece.end, piece.parts, costs.share(piece.parts)))


def longest(division: Division, runs: DueRuns, costs: WindowCosts) -> float:
    """Return the predicted seconds of the longest task."""
    return max((sum(seconds_of(piece, runs, costs) for piece in task) for task in division.tasks), default=0.0)


def bundled(pieces: Sequence[Piece], runs: DueRuns, costs: WindowCosts, tasks: int) -> Division:
    """Return at most `tasks` tasks: the longest piece goes first, each to the task with the least work."""
    weighed = sorted((-seconds_of(piece, runs, costs), piece) for piece in pieces)
    heap: list[tuple[float, int]] = [(0.0, task) for task in range(min(tasks, len(pieces)))]
    found: list[list[Piece]] = [[] for _ in heap]
    for seconds, piece in weighed:
        load, task = heap[0]
        found[task].append(piece)
        heapreplace(heap, (load - seconds, task))
    return Division(tuple(tuple(_joined(task)) for task in found))


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces of a task in order; whole runs that follow on from each other are one run, which shares merges."""
    last: Piece | None = None
    for piece in sorted(pieces):
        if last is not None and last.parts == piece.parts == 1 and last.end == piece.begin:
            last = Piece(last.begin, piece.end)
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last


def _candidates(
    runs: DueRuns, costs: WindowCosts, due: DueWindows, fixed: Division, expected: float
) -> Iterator[Division]:
    workers, parts = due.workers, {piece.parts for piece in fixed.pieces}
    if due.keys:
        parts |= {count for count in (*_PARTS, workers) if count <= workers}
    search = _Search(runs, costs, sorted({1, *parts}))
    pieces = search.best(max(workers, len(fixed.tasks)), expected)
    yield Division.of_pieces(pieces) if pieces else fixed
    if not pieces:
        return
    even = costs.seconds(runs.work(0, len(runs))) / workers
    seconds = max(seconds_of(piece, runs, costs) for piece in pieces)
    if seconds <= EVEN * even:
        return
    for share in SHORTER:
        pieces = search.within(MOST_PIECES * workers, share * seconds)
        if pieces:
            yield bundled(pieces, runs, costs, workers)
    if workers < len(runs) <= MOST_PIECES * workers:
        yield bundled([Piece(at, at + 1) for at in range(len(runs))], runs, costs, workers)


class _Search:
    """Finds the division into a number of pieces whose longest piece is shortest.

    The cost of a run grows with its end and falls with its beginning, so for each bound on the seconds of a piece, the
    windows that the first t pieces can reach follow from those that fewer can reach.
    """

    def __init__(self, runs: DueRuns, costs: WindowCosts, parts: Sequence[int]) -> None:
        self._runs = runs
        self._parts = parts
        #: no division is less work than all windows as one run
        self._whole = costs.seconds(runs.work(0, len(runs)))
        self._costs = {count: _Prefixes(runs, costs, count) for count in parts}

    def best(self, pieces: int, within: float) -> tuple[Piece, ...]:
        """Return at most so many pieces whose longest piece is shortest; none if they cannot be `within` so many seconds."""
        low, high = self._whole / pieces, within * _ROUNDING
        found = self.within(pieces, high)
        for _ in range(_STEPS):
            if not found or high - low <= _EXACT * high:
                break
            middle = (low + high) / 2
            shorter = self.within(pieces, middle)
            low, high, found = (low, middle, shorter) if shorter else (middle, high, found)
        return found

    def within(self, pieces: int, bound: float) -> tuple[Piece, ...]:
        """Return at most so many pieces, none of which takes longer than the bound, of all windows; none if there are none."""
        reach, how = [0], [(0, 1)]
        while reach[-1] < len(self._runs) and len(reach) <= pieces:
            options = [(reach[-1], 0, 1)]
            for parts in self._parts:
                if parts <= len(reach):
                    begin = reach[len(reach) - parts]
                    options.append((self._costs[parts].reach(begin, bound), begin, parts))
            end, begin, parts = max(options, key=lambda option: option[0])
            reach.append(end)
            how.append((begin, parts))
        return self._traced(reach, how) if reach[-1] == len(self._runs) else ()

    def _traced(self, reach: Sequence[int], how: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
        ranges: list[Piece] = []
        at = len(reach) - 1
        while reach[at] > 0:
            if reach[at] == reach[at - 1]:
                at -= 1
                continue
            begin, parts = how[at]
            ranges += [Piece(begin, reach[at], part, parts) for part in range(parts)]
            at -= parts
        return tuple(sorted(ranges))


class _Prefixes:
    """The seconds of runs in one number of parts, as sums over the windows before each one."""

    def __init__(self, runs: DueRuns, costs: WindowCosts, parts: int) -> None:
        share, each = costs.share(parts), costs.each
        divided = each.divided if parts > 1 else 0.0
        alone = [costs.seconds(runs.work(at, at + 1, parts, share)) for at in range(len(runs))]
        after = (
            each.windows
            + share * (each.added * size.added + each.held * size.rows + each.pairs * size.pairs)
            + divided * size.added
            for size in runs.sizes
        )
        self._alone = alone
        self._after = [0.0, *accumulate(after)]

    def reach(self, begin: int, bound: float) -> int:
        """Return the end of the longest run from `begin` that takes no longer than the bound; `begin` if none does."""
        if begin == len(self._alone) or self._alone[begin] > bound:
            return begin
        return bisect_right(self._after, bound - self._alone[begin] + self._after[begin + 1], begin + 1) - 1


def _named(division: Division) -> str:
    numbers: dict[str, Any] = division.snapshot()
    by_keys = f", up to {numbers['parts']} parts of the keys of a run" if numbers["parts"] > 1 else ""
    return f"{numbers['runs']} runs in {numbers['tasks']} tasks{by_keys}"
