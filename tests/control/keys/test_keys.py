"""Keys on nodes: the ring, the most frequent keys, and sub-keys."""

from __future__ import annotations

from collections import Counter
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.keys import FrequencyAware, HashRing, KeyPlan, SpaceSaving, basic, load_balance
from skypane.control.keys.frequent import Frequencies, sub_keys
from skypane.control.keys.partitioning import part_of
from skypane.types import ConfigError

KEYS = np.arange(16_384)
STREAM = st.lists(st.lists(st.integers(0, 12), max_size=30), max_size=6)


@given(STREAM, st.integers(1, 8))
def test_space_saving_errs_by_at_most_its_error_and_the_room_bounds_it(stream: list[list[int]], room: int):
    sketch = SpaceSaving(room)
    state = reduce(sketch.observe, (np.array(batch, np.int64) for batch in stream), sketch.init())
    true = Counter(key for batch in stream for key in batch)
    assert state.seen == true.total()
    assert len(state.keys) <= room
    kept = dict(zip(state.keys.tolist(), state.counts.tolist(), strict=True))
    for key, count in true.items():
        if key in kept:
            assert kept[key] - state.error <= count <= kept[key]
        else:
            assert count <= state.error
    assert state.error * (room + 1) <= true.total() * max(1, len(stream))
    assert Frequencies.restored(state.snapshot()).snapshot() == state.snapshot()


def test_a_node_that_goes_takes_its_own_keys_and_no_others():
    before = HashRing(tuple(range(10)))
    after = HashRing(tuple(range(9)))
    moved = before.of(KEYS) != after.of(KEYS)
    assert (moved == (before.of(KEYS) == 9)).all()
    assert (basic(KEYS, 10) != basic(KEYS, 9)).mean() > 0.85


def test_shares_of_a_ring_even_out_with_its_places():
    rough, fine = (load_balance(HashRing(tuple(range(16)), places).of(KEYS), 16) for places in (4, 1_024))
    assert fine < 0.08 < rough


def nodes_of(plan: KeyPlan, key: int) -> frozenset[int]:
    """Return the nodes of the parts of a key, by the definition of its sub-keys."""
    numbers = np.arange(plan.parts.get(key, 1))
    return frozenset(plan.ring.of(part_of(np.full(len(numbers), key), numbers)).tolist())


def test_a_key_that_holds_half_the_rows_is_spread_and_its_parts_are_known():
    rng = np.random.default_rng(2)
    keys = np.where(rng.random(50_000) < 0.5, 7, rng.integers(0, 16_384, 50_000))
    sketch = SpaceSaving(1_024)
    ring = HashRing(tuple(range(8)))
    whole, cut = (FrequencyAware(most).decide(sketch.observe(sketch.init(), keys), ring) for most in (0, 5))
    assert load_balance(whole.route(keys), 8) > 1
    assert load_balance(cut.route(keys), 8) < 0.25
    assert set(cut.route(keys[keys == 7]).tolist()) == nodes_of(cut, 7)
    assert nodes_of(whole, 7) == frozenset(whole.route(np.array([7])).tolist())


def test_tuples_of_a_key_that_is_cut_take_its_parts_in_turn():
    plan = KeyPlan(HashRing(tuple(range(50)), 64), {5: 3})
    nodes = plan.route(np.array([5, 1, 5, 5, 1, 5, 5, 5]))
    assert nodes[[0, 2, 3]].tolist() == nodes[[5, 6, 7]].tolist()
    assert nodes[1] == nodes[4]


def test_a_key_that_is_not_cut_is_on_the_node_that_its_tuples_go_to():
    plan = KeyPlan(HashRing(tuple(range(8))), {5: 3})
    keys = np.array([key for key in range(100) if key != 5])
    assert [nodes_of(plan, key) for key in keys.tolist()] == [frozenset([node]) for node in plan.route(keys).tolist()]


def test_parts_of_keys_by_hand():
    """From a hundred tuples, a half on four nodes is two fair shares: 128 parts; a tenth 25.6, a hundredth 2.56."""
    seen = Frequencies(np.array([7, 8, 9]), np.array([50, 10, 1]), 100, 0)
    assert sub_keys(seen, 3, 4) == {7: 128, 8: 26, 9: 3}
    assert sub_keys(seen, 2, 4) == {7: 128, 8: 26}
    assert sub_keys(seen, 3, 1) == {7: 32, 8: 7}, "less than a part is not cut"


def test_an_invalid_value_is_an_error():
    with pytest.raises(ConfigError, match="need a node"):
        HashRing(())
    with pytest.raises(ConfigError, match="room must be at least 1 key, got 0"):
        SpaceSaving(0)
    with pytest.raises(ConfigError, match="most must be at least 0 keys, got -1"):
        FrequencyAware(-1)
