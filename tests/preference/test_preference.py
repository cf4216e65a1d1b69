from __future__ import annotations

import json
import pickle
from datetime import date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from tests.preference.oracle import Tree
from tests.preference.strategies import expressible_trees

from skypane.preference import Preference, around, diff, from_sense, high, low, parse
from skypane.types import ConfigError

A, B, C, D = low("a"), high("b"), around("c", 40), low("d")
SCHEMA = pa.schema(
    {"price": pa.float64(), "Rating": pa.int32(), "tags": pa.list_(pa.string()), "ts": pa.timestamp("us")}
)


def test_product_is_commutative_associative_and_flat():
    assert A * B == B * A
    assert hash(A * B) == hash(B * A)
    assert (A * B) * C == A * (B * C)
    assert len((A * B * C).levels[0]) == 3


def test_at_most_254_criteria_are_compared_at_once():
    """In prioritised levels there may be more."""
    names = [f"c{number}" for number in range(300)]
    rows = pa.table({name: [1.0, 0.0 if name == names[-1] else 1.0] for name in names})
    with pytest.raises(ConfigError, match=r"255 criteria in one Pareto product of .*at most 254.*with &, or combine"):
        parse(", ".join(f"{name} MIN" for name in names[:255]))
    first, others = (parse(", ".join(f"{name} MIN" for name in some)) for some in (names[:254], names[254:]))
    assert first.best(rows).tolist() == [0, 1]
    assert (first & others).best(rows).tolist() == [1]


def test_prioritised_is_associative_and_not_commutative():
    assert (A & B) & C == A & (B & C)
    assert A & B != B & A


def test_product_binds_tighter_than_prioritised():
    assert A * B & C == (A * B) & C


def test_a_chain_of_criteria_is_a_factor():
    mixed = (A & B) * C
    assert [len(component) for component in mixed.levels[0]] == [2, 1]
    assert mixed != (B & A) * C


def test_groups_are_not_ranked():
    assert diff("city") * A == A * diff("city")
    assert diff("city") * A & B == diff("city") * (A & B)
    assert (diff("city") * A).columns == ("city", "a")
    assert (diff("city") * A).ranked == ("a",)


@pytest.mark.parametrize("build", [lambda: (A * B & C) * D, lambda: D * (A & B * C)])
def test_a_product_inside_a_chain_inside_a_product_is_refused(build):
    with pytest.raises(ConfigError, match=r"cannot be a factor of \*: .*low\('d'\).*; write .*\(a & b\) \* c"):
        build()


def test_groups_on_the_right_of_prioritised_are_refused():
    with pytest.raises(ConfigError, match=r"diff\('city'\) cannot be on the right of &.*write diff\('city'\) \*"):
        A & diff("city")


@pytest.mark.parametrize("build", [lambda: A * high("a"), lambda: A & around("a", 1), lambda: diff("a") * A])
def test_a_column_twice_is_refused(build):
    with pytest.raises(ConfigError, match="column 'a' is named twice"):
        build()


@pytest.mark.parametrize("other", ["b MIN", 3, None])
def test_operators_take_preferences_only(other):
    with pytest.raises(TypeError):
        A * other
    with pytest.raises(TypeError):
        A & other


def test_the_method_of_accepts_a_preference_or_its_text():
    assert Preference.of(A) is A
    assert Preference.of("a MIN") == A
    with pytest.raises(ConfigError, match=r"preference must be .* got 3"):
        Preference.of(3)  # type: ignore[arg-type]


def test_whole_targets_are_one_target():
    assert around("c", 40.0) == around("c", 40) == around("c", (40, 40))
    assert around("c", 40) != around("c", (40, 41))


@pytest.mark.parametrize("target", [float("nan"), float("inf"), True, "40", None, (2, 1), (1, date(2013, 1, 1))])
def test_targets_that_are_none_are_refused(target):
    with pytest.raises(ConfigError, match=r"around\('c'\) needs"):
        around("c", target)


def test_repr_is_python():
    assert repr(diff("city") * (A & B) * C) == "diff('city') * (low('a') & high('b')) * around('c', 40)"
    assert repr(A * B & C) == "low('a') * high('b') & around('c', 40)"
    assert repr(diff("city")) == "diff('city')"


@given(expressible_trees())
def test_repr_text_and_pickle_come_back_equal(tree: Tree):
    preference = tree.build()
    assert parse(str(preference)) == preference
    assert pickle.loads(pickle.dumps(preference)) == preference  # noqa: S301
    assert json.loads(json.dumps(preference.describe())) == preference.describe()


@given(expressible_trees(), expressible_trees())
def test_equal_exactly_when_described_equal(one: Tree, other: Tree):
    p, q = one.build(), other.build()
    assert (p == q) == (json.dumps(p.describe()) == json.dumps(q.describe()))
    assert p != q or hash(p) == hash(q)


def test_from_sense():
    assert from_sense(["a", "b", "city"], ["min", "max", "diff"]) == A * B * diff("city")
    with pytest.raises(ConfigError, match="got 2 columns and 1 senses"):
        from_sense(["a", "b"], ["min"])
    with pytest.raises(ConfigError, match="column 'b': sense must be 'min', 'max' or 'diff', got 'MAX'"):
        from_sense(["a", "b"], ["min", "MAX"])


def test_validate_accepts_what_can_be_ranked():
    (diff("ts") * low("price") * high("Rating")).validate(SCHEMA)
    around("ts", datetime(2013, 1, 1)).validate(SCHEMA)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("preference", "message"),
    [
        (low("prise"), "column 'prise' does not exist; did you mean 'price'?"),
        (low("rating"), "column 'rating' does not exist; did you mean 'Rating'?"),
        (low("x"), "column 'x' does not exist; the columns are 'price', 'Rating', 'tags', 'ts'"),
        (low("tags"), "column 'tags' of type list<item: string> has no order"),
        (diff("tags") * low("price"), "column 'tags' of type list<item: string> cannot form groups"),
        (around("ts", 3), "a column of type timestamp[us] needs a datetime without a time zone as its target"),
    ],
)
def test_validate_names_column_and_type(preference: Preference, message: str):
    with pytest.raises(ConfigError) as error:
        preference.validate(SCHEMA)
    assert message in str(error.value)


def test_points_need_one_level():
    table = pa.table({"a": [2.0, 1.0], "b": [1, 2], "c": [0, 40]})
    assert (A * B * C).orient(table).tolist() == [[2.0, -1.0, 40.0], [1.0, -2.0, 0.0]]
    assert ((A & B) * C).orient(table).tolist() == [[1.0, 40.0], [0.0, 0.0]]
    with pytest.raises(ConfigError, match="points need a product of criteria without & at the top"):
        (A & B).orient(table)
