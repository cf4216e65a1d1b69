from __future__ import annotations

import math
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.preference import Score
from skypane.preference.written import Written
from skypane.types import BadInputError, ConfigError

TABLE = pa.table(
    {
        "a": [4.0, 0.0, -1.0],
        "b": [1, 2, 3],
        "c": pa.array([True, False, True]),
        "d": pa.array([Decimal("1.5"), Decimal("2.5"), Decimal(0)]),
        "total price": [1.0, 2.0, 3.0],
        "text": ["x", "y", "z"],
    }
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a", [4, 0, -1]),
        ("2 * a - b", [7, -2, -5]),
        ("-(a + b) / 2", [-2.5, -1, -1]),
        ("-b ** 2", [-1, -4, -9]),
        ("+abs(a)", [4, 0, 1]),
        ("min(a, b, 1.5)", [1, 0, -1]),
        ("max(a, 0)", [4, 0, 0]),
        ("sqrt(abs(a)) + exp(0 * b)", [3, 1, 2]),
        ("log(b)", [0, math.log(2), math.log(3)]),
        ("c + d", [2.5, 2.5, 1]),
        ("`total price` * 10", [10, 20, 30]),
        ("\n  `a` +\n `b`", [5, 2, 2]),
    ],
)
def test_a_score_is_the_arithmetic_of_its_text(text: str, values: list[float]):
    assert Score(text).values(TABLE).tolist() == pytest.approx(values)


def test_what_has_no_value_is_nan_without_a_warning():
    assert np.isnan(Score("a / a").values(TABLE)).tolist() == [False, True, False]
    assert np.isnan(Score("log(a)").values(TABLE)).tolist() == [False, False, True]
    assert Score("b / a").values(TABLE)[1] == math.inf


def test_a_score_needs_a_column():
    with pytest.raises(ConfigError, match="score '1 \\+ 2' names no column"):
        Score("1 + 2")


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=20), st.data())
def test_a_row_scores_the_same_in_any_company(values: list[float], data: st.DataObject):
    score = Score("exp(a / 500) * log(a) - sqrt(a) ** 1.5 + a ** 2")
    start = data.draw(st.integers(0, len(values) - 1))
    alone = score.values(pa.table({"a": values[start:]}))
    assert alone.tolist() == score.values(pa.table({"a": values})).tolist()[start:]


def test_the_method_of_accepts_a_score_or_its_text():
    score = Score("a")
    assert Score.of(score) is score
    assert Score.of("a") == score
    with pytest.raises(ConfigError, match=r"score must be a text such as .* got 3"):
        Score.of(3)  # type: ignore[arg-type]


def test_columns_in_order_each_once():
    assert Score("b + min(a, `total price`) * b").columns == ("b", "a", "total price")


def test_equal_scores_have_equal_texts():
    assert Score("a+(b*2)") == Score(" a + b * 2 ")
    assert str(Score("`a`-`total price`")) == "a - `total price`"
    assert Score("(a - b) - d") == Score("a - b - d") != Score("a - (b - d)")


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8))
def test_any_column_name_survives_in_backticks(name: str):
    score = Score("`" + name.replace("`", "``") + "` * 2 + `other one`")
    again = pickle.loads(pickle.dumps(score))  # noqa: S301
    assert again == score
    assert Score(str(score)) == score
    table = pa.table({name: [1.0], "other one": [0.5]})
    assert score.values(table).tolist() == again.values(table).tolist() == [2.5]


def test_validate():
    for score in ("a * 2 - sqrt(b) / 0.5 + log(a)", "text", "d"):
        Score(score).validate(TABLE.schema)
    with pytest.raises(
        ConfigError, match=r"score 'a \+ d' cannot be computed without Spark \(a is double, d is decimal"
    ):
        Score("a + d").validate(TABLE.schema)
    with pytest.raises(ConfigError, match="column 'e' does not exist"):
        Score("e").validate(TABLE.schema)


def test_null_is_refused_by_column():
    with pytest.raises(BadInputError, match="column 'a' is null in 1 row;"):
        Score("a").values(pa.table({"a": [1.0, None]}))


def test_no_rows():
    assert Score("a + 1").values(TABLE.slice(0, 0)).tolist() == []


@pytest.mark.parametrize("text", ["x + -(-2147483648)", "- -2147483648 * x", "x - +(-(-9223372036854775807))"])
def test_workers_leave_literals_with_two_signs_to_spark(text: str):
    """SQL reads -2147483648 as a number of 32 bits, whose negative overflows."""
    schema = pa.schema([("x", pa.float64())])
    assert (one := Score.of("x - -2147483648")).for_types(schema) is one
    assert isinstance(Score.of(text).for_types(schema).text, Written)
