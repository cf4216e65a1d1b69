"""Compilation of kernels ahead of their first call, family by family: those of a family are needed by the same queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from numba.core import event

from skypane.kernels import elementary, exact, keyed, sliding_states
from skypane.kernels.batch_skyline import skyline_indices
from skypane.kernels.blocks import BLOCK
from skypane.kernels.byte_ranks import byte_ranks
from skypane.kernels.clusters import clustered
from skypane.kernels.column_layout import columns_of, frozen
from skypane.kernels.compiled import UNCACHED, lacking
from skypane.kernels.families import AGGREGATES, DOMINANCE, EVERY, FRONTS, SCORES, SKYLINES
from skypane.kernels.gathering import put_points
from skypane.kernels.grouped_skyline import skyline_indices_by_group
from skypane.kernels.hashing import hash_bytes
from skypane.kernels.influence import END, START, TIME, absorb, absorb_apart, empty_index, empty_slots, rebuild, visit
from skypane.kernels.influence_groups import (
    NO_MEMBERS,
    absorb_members,
    empty_points,
    members_at,
    members_of,
    move_together,
    rows_at,
)
from skypane.kernels.kdominance import dominance_factors, k_dominant_indices, top_delta_indices
from skypane.kernels.key_table import number_keys
from skypane.kernels.merging import advance, sorted_order
from skypane.kernels.state_split import StateSplit, tops_in
from skypane.types import FloatArray, IntArray

_USUAL_SECONDS: Final = 40
"""Seconds of one core that all kernels take, on x86-64: 42 with the import of all that they need."""


class Family(NamedTuple):
    """Kernels that the same queries need.

    run       calls every public function so that all its stages run; array types do not depend on n, d or the values
    modules   those whose kernels no other family calls
    """

    run: Callable[[], None]
    modules: frozenset[str]


def warm(report: Callable[[str], None] | None = None, families: Iterable[str] = EVERY) -> tuple[str, ...]:
    """Run every kernel once on the array types that workers use; return the names of the kernels that were compiled.

    Kernels that were loaded from disk, or were in memory already, are not included. `report` is called once, before the
    first compilation, with a line for the user; it is not called if all kernels are cached on disk.
    families   those whose kernels are run
    """
    with compilations(report) as compiled:
        for name in families:
            _FAMILIES[name].run()
    return tuple(compiled)


def missing(families: Iterable[str]) -> list[str]:
    """Return the names of kernels of these families that are not cached on disk; nothing runs."""
    return lacking({module for name in families for module in _FAMILIES[name].modules})


def _run_skylines() -> None:
    cube = _points(4096, 3)
    skyline_indices(cube)
    skyline_indices(cube[:64])
    skyline_indices(cube[:, :2])
    line = np.arange(4096.0)
    skyline_indices(np.column_stack([line, -line]))  # too many for nested loops
    skyline_indices_by_group(cube, np.arange(4096) // 4)
    skyline_indices(_plane())


def _plane() -> FloatArray:
    """Return points nearly all of which are skyline, so that bitmap blocks fill up."""
    plane = _points(4096, 3)
    plane[:, 2] = -plane[:, 0] - plane[:, 1]
    plane[:512] = plane[512:1024]  # repeated rows
    plane[:, 0] = np.exp(40.0 * plane[:, 0])  # a heavy tail, whose ranks come from cuts
    return plane


def _run_dominance() -> None:
    plane = _plane()
    dominance_factors(plane)
    k_dominant_indices(plane, 2, only_skyline=True)
    top_delta_indices(plane, 1)


def _run_fronts() -> None:
    _stream(_points(4096, 3))
    keyed.number_groups(frozen(np.arange(2)), 2, frozen(np.zeros(1, np.int64)))


def _run_aggregates() -> None:
    numbers = np.arange(2)
    advance(numbers.copy(), numbers, numbers)
    sorted_order(numbers, numbers)
    for keys in (1, 2):  # a table of one row is both C- and F-contiguous, another array type for Numba
        _by_key(keys)


def _run_scores() -> None:
    elementary.power(elementary.exp(elementary.log(_points(4096, 3)[0])), 2.0)


def _stream(points: FloatArray) -> None:
    """Run the kernels of sliding windows on points that arrive one per microsecond."""
    n, d = points.shape
    slots, index = empty_slots(n, d), empty_index(n, d)
    slots.points[:] = points
    slots.ranks[:] = byte_ranks(columns_of(points))
    slots.clocks[TIME] = slots.clocks[START] = np.arange(n)
    slots.clocks[END] = slots.clocks[TIME] + n
    absorb(slots, index, 0, n, n)
    rebuild(slots, index, n)
    absorb_apart(slots, index, n // 2, n // 2 + BLOCK, n)
    visit(slots, index, n // 2, n // 2 + BLOCK, n)
    put_points(slots.points, columns_of(points), clustered(slots.ranks, slots.clocks[TIME], 0))
    room = empty_points(n, d)
    members = absorb_members(room, slots.clocks, NO_MEMBERS, members_of(np.arange(n) // 4, 0), n)
    absorb_members(room, slots.clocks, members, NO_MEMBERS, n)
    move_together(room, slots.clocks, np.arange(n), members_at(slots.clocks, members, n))
    rows_at(slots.clocks, np.arange(n), n)


def _by_key(keys: int) -> None:
    """Run the kernels of aggregates by key, with all ways of merging, on one row per key."""
    ids, keep, number = frozen(np.arange(keys)), frozen(np.ones(keys, np.bool_)), frozen(np.ones(keys))
    sums, squares, least = 3, 3 + exact.WIDTH, 3 + 2 * exact.WIDTH
    ways = [(keyed.ADD, 0, 3), (keyed.EXACT, sums, exact.WIDTH), (keyed.EXACT, squares, exact.WIDTH)]
    parts = frozen(np.array([*ways, (keyed.LEAST, least, 2)]))
    keyed.number_groups(ids, keys, frozen(np.zeros(1, np.int64)))
    states = keyed.empty_states(keys, least + 2, parts)
    keyed.add_counts(states, 0, ids, keep)
    keyed.add_integers(states, 1, ids, ids, keep)
    exact.add_numbers(states, sums, ids, number.view(np.int64), keep)
    exact.add_squares(states, squares, ids, number, keep)
    keyed.keep_least(states, least, ids, frozen(np.zeros((keys, 1), np.int64)), keep)
    others = frozen(states.copy())
    keyed.merge_states(states, ids, others, parts)
    for states_of_keys in (others, _slide(others, ids, parts)):
        exact.exact_values(states_of_keys, sums)
        exact.squared_deviations(states_of_keys, 0, sums, squares)
    counts = np.ones(keys, np.int64)
    keyed.divide(np.ones(keys), counts)
    keyed.numbers_of(counts, largest=True)
    number_keys(np.full(2, -1, np.int32), np.zeros((1, 2), np.int64), 0, frozen(np.zeros((1, 2), np.int64)))
    hash_bytes(frozen(np.zeros(1, np.uint8)), frozen(np.zeros(2, np.int64)))


def _slide(states: IntArray, ids: IntArray, plan: IntArray) -> Any:
    """Push a pane with one row per key into an empty window, move it to the other stack, remove it; return states."""
    split, keys = StateSplit.of(plan, [tops_in(states, plan)]), len(ids)
    order = frozen(sliding_states.rows_by_number(ids, keys))
    sums = sliding_states.sums_of(states, order, split.sums, split.sums_width)
    stacked = sliding_states.stacked_of(states, order, split.stacked, split.stacked_width)
    totals, stack = np.zeros((split.sums_width, keys), np.int64).T, split.empty_stack(keys)
    sliding_states.add_sums(totals, ids, sums)
    keyed.merge_states(stack, ids, stacked, split.stacked)
    keyed.put_states(stack, ids, keyed.merge_noting(stack, ids, stacked, split.stacked))
    found = sliding_states.window_states(totals, stack, stack, keys, split.width, split.sums, split.stacked)
    sliding_states.take_away(totals, ids, sums)
    return keyed.take_states(found, keyed.rows_with(found))


def _points(n: int, d: int) -> FloatArray:
    """Return points spread evenly over the unit cube, without a pattern (a Kronecker sequence)."""
    steps = np.sqrt(np.array([2.0, 3.0, 5.0])[:d])
    return np.asfortranarray(np.outer(np.arange(1, n + 1), steps) % 1.0)


def _family(run: Callable[[], None], *modules: str) -> Family:
    return Family(run, frozenset(f"{__package__}.{module}" for module in modules))


_FAMILIES: Final = {
    SKYLINES: _family(_run_skylines, "thinning", "sweep", "sort_filter", "grouped_skyline"),
    FRONTS: _family(_run_fronts, "clusters", "influence", "influence_groups"),
    DOMINANCE: _family(_run_dominance, "kdominance"),
    AGGREGATES: _family(_run_aggregates, "exact", "keyed", "sliding_states", "key_table", "hashing", "merging"),
    SCORES: _family(_run_scores, "elementary"),
}
"""The families by name."""


def _announcement() -> str:
    if not UNCACHED:
        return f"compiling kernels (once per installation, about {_USUAL_SECONDS} s of one core)"
    return (
        f"compiling kernels, about {_USUAL_SECONDS} s of one core in each process, workers too: there is no folder to keep them in; "
        f"set NUMBA_CACHE_DIR to one that this user can write, on every machine"
    )


class _Watch(event.Listener):  # type: ignore[misc]
    """Records each compilation when it starts; Numba raises no such event when it loads from its cache."""

    def __init__(self, report: Callable[[str], None] | None) -> None:
        self.compiled: list[str] = []
        self._report = report

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        if self._report is not None:
            report, self._report = self._report, None
            report(_announcement())
        if function.__module__.startswith(__package__ or ""):  # not Numba's own helpers
            self.compiled.append(function.__qualname__)

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def compilations(report: Callable[[str], None] | None) -> Iterator[list[str]]:
    """Yield a list to which the names of skypane's kernels are added as they are compiled; `report` as for warm()."""
    watch = _Watch(report)
    event.register("numba:compile", watch)
    try:
        yield watch.compiled
    finally:
        event.unregister("numba:compile", watch)
