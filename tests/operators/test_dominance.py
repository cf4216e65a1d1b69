from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.kernels.strategies import correlated, grid, independent
from tests.kernels.test_kdominance import factors_by_columns

from skypane.operators.dominance import KDominant, TopDelta
from skypane.preference import from_sense, low
from skypane.types import ConfigError
from skypane.workloads.content.points import anticorrelated

ROWS = st.integers(1, 5).flatmap(
    lambda d: st.lists(st.lists(st.integers(0, 4), min_size=d, max_size=d), min_size=1, max_size=14)
)
GRID = ROWS.map(lambda rows: np.array(rows, np.float64))


def make(points: np.ndarray) -> tuple[pa.Table, list[str]]:
    names = [f"c{j}" for j in range(points.shape[1])]
    columns = {name: points[:, j] for j, name in enumerate(names)}
    return pa.table(columns | {"row": np.arange(len(points)), "half": np.arange(len(points)) % 2}), names


def halves(points: np.ndarray) -> list[np.ndarray]:
    """Row numbers of the groups that `half` forms."""
    return [np.arange(start, len(points), 2) for start in (0, 1)]


@given(GRID, st.data())
def test_k_dominant_is_the_definition(points: np.ndarray, data: st.DataObject):
    table, names = make(points)
    k = data.draw(st.integers(1, len(names)))
    query = KDominant(k, from_sense(names, ["min"] * len(names)))
    assert query.lower(query.lift(table))["row"].to_pylist() == oracles.k_dominant_indices(points, k)


@given(GRID, st.integers(0, 6))
def test_top_delta_is_the_definition(points: np.ndarray, delta: int):
    table, names = make(points)
    query = TopDelta(delta, from_sense(names, ["min"] * len(names)))
    assert query.lower(query.lift(table))["row"].to_pylist() == sorted(oracles.top_delta_indices(points, delta)[0])


@given(GRID, st.integers(0, 3))
def test_each_group_has_its_own_answer(points: np.ndarray, delta: int):
    table, names = make(points)
    preference = from_sense(names, ["max"] * len(names))
    k_dominant = KDominant(1, preference, by=("half",))
    top_delta = TopDelta(delta, preference, by=("half",))
    for query, rule in (
        (k_dominant, lambda p: oracles.k_dominant_indices(p, 1)),
        (top_delta, lambda p: oracles.top_delta_indices(p, delta)[0]),
    ):
        wanted = [int(half[i]) for half in halves(points) if len(half) for i in rule(-points[half])]
        assert query.lower(query.lift(table))["row"].to_pylist() == sorted(wanted)


@pytest.mark.parametrize("d", range(1, 13))
@pytest.mark.parametrize("draw", [independent, anticorrelated, correlated, grid], ids=lambda f: f.__name__)
def test_a_split_window_is_filtered_as_a_whole(d: int, draw: Callable[..., np.ndarray]):
    points = draw(240, d, np.random.default_rng(d))
    table, names = make(points)
    preference = from_sense(names, ["min"] * d)
    factor = factors_by_columns(points)
    k_star = next((k for k in range(1, d) if (factor < k).sum() > 10), d)
    for query, k in (
        (KDominant(max(1, d - 1), preference), max(1, d - 1)),
        (TopDelta(10, preference), k_star),
    ):
        partials = [query.lift(table.slice(start, 60)) for start in range(0, 240, 60)]
        assert query.lower(query.combine(partials))["row"].to_pylist() == np.flatnonzero(factor < k).tolist()


def test_a_chain_counts_as_one_criterion():
    table = pa.table({"a": [1, 1, 2], "b": [2, 1, 0], "c": [0, 1, 1]})
    query = KDominant(1, (low("a") & low("b")) * low("c"))
    assert query.lower(query.lift(table)).num_rows == 0  # the first is best in c, the second in (a, b)
    with pytest.raises(ConfigError, match="need 1 <= k <= 2, the number of criteria"):
        KDominant(3, (low("a") & low("b")) * low("c"))


@pytest.mark.parametrize("k", [0, 3, 1.0, True, "1"])
def test_k_must_be_within_the_criteria(k):
    with pytest.raises(ConfigError, match=f"need 1 <= k <= 2, .* got k={k!r}"):
        KDominant(k, low("a") * low("b"))


@pytest.mark.parametrize("delta", [-1, 1.5, False, None])
def test_delta_must_be_a_count(delta):
    with pytest.raises(ConfigError, match=f"need a whole delta >= 0, got delta={delta!r}"):
        TopDelta(delta, low("a"))


def test_levels_have_no_k_dominance():
    with pytest.raises(ConfigError, match="k-dominant queries need a product of criteria without &"):
        KDominant(1, low("a") & low("b"))
    with pytest.raises(ConfigError, match="top-delta queries need a product of criteria without &"):
        TopDelta(1, low("a") & low("b"))


def test_text_is_taken():
    query = KDominant(1, "a MIN, b MAX", by="g")
    assert query == KDominant(1, from_sense(["a", "b"], ["min", "max"]), by=("g",))
    assert query.required == ("a", "b")
