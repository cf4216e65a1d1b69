from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.oracles import skyline_mask

from skypane.operators.by_preference import is_count, take_rows
from skypane.operators.skyline import Skyline
from skypane.preference import diff, from_sense, high, low
from skypane.types import ConfigError

TABLE = pa.table({"price": [1.0, 2.0, 1.0, 3.0], "rating": [1, 1, 1, 5], "city": ["A", "A", "B", None]})
BOTH = low("price") * high("rating")


def test_rows_survive_whole_in_their_order():
    assert Skyline(BOTH).lift(TABLE).equals(TABLE.take([0, 2, 3]))


def test_one_skyline_per_group_with_by_or_diff():
    by, of_diff = Skyline(low("price"), by=("city",)), Skyline(diff("city") * low("price"))
    assert by.lift(TABLE).equals(of_diff.lift(TABLE))
    assert by.lift(TABLE)["price"].to_pylist() == [1.0, 1.0, 3.0]
    assert by.describe() == of_diff.describe()


def test_text_and_one_column_by_are_taken():
    assert Skyline("price MIN", by="city") == Skyline(low("price"), by=("city",))


def test_columns_that_only_form_groups_may_be_null():
    query = Skyline(diff("city") * BOTH, by=("region",))
    assert query.required == ("price", "rating")
    assert query.groups == ("region", "city")


def test_nothing_is_copied_when_all_survive():
    assert take_rows(TABLE, np.arange(4)) is TABLE
    assert Skyline(low("price"), by=("price",)).lift(TABLE) is TABLE


def test_one_partial_is_its_own_combination():
    query = Skyline(BOTH)
    assert query.combine([TABLE]) is TABLE


def test_combine_is_idempotent_except_for_duplicates():
    query = Skyline(BOTH)
    partial = query.lift(TABLE)
    beaten = TABLE.slice(1, 1)
    assert query.combine([partial, query.lift(beaten)]).equals(partial)


def test_partials_with_different_dictionaries_are_merged():
    parts = [pa.table({"a": [1], "k": pa.array([key]).dictionary_encode()}) for key in ("x", "y")]
    assert Skyline(low("a")).combine(parts)["k"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize("d", range(1, 13))
def test_split_windows_are_the_skyline_of_all_rows(d: int):
    rng = np.random.default_rng(d)
    x = rng.integers(0, 30, (600, d)) / 10
    names = [f"c{j}" for j in range(d)]
    table = pa.table({name: x[:, j] for j, name in enumerate(names)} | {"row": np.arange(600)})
    query = Skyline(from_sense(names, ["min"] * d))
    found = query.combine([query.lift(table.slice(start, 100)) for start in range(0, 600, 100)])
    assert found["row"].to_pylist() == np.flatnonzero(skyline_mask(x)).tolist()


def test_validate_looks_at_by_too():
    Skyline(BOTH, by=("city",)).validate(TABLE.schema)
    with pytest.raises(ConfigError, match="column 'town' does not exist"):
        Skyline(BOTH, by=("town",)).validate(TABLE.schema)
    with pytest.raises(ConfigError, match="column 'prize' does not exist; did you mean 'price'"):
        Skyline(low("prize")).validate(TABLE.schema)


def test_a_query_must_rank_something():
    with pytest.raises(ConfigError, match=r"need at least one of low, high or around, got diff\('city'\)"):
        Skyline(diff("city"))


@pytest.mark.parametrize(("value", "is_one"), [(0, True), (-3, True), (True, False), (1.0, False), ("1", False)])
def test_is_count(value, is_one):
    assert is_count(value) is is_one
