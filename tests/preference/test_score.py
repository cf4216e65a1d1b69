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
def test_is_the_arithmetic_it_says(text: str, values: list[float]):
    assert Score(text).values(TABLE).tolist() == pytest.approx(values)


def test_what_has_no_value_is_nan_without_a_warning():
    assert np.isnan(Score("a / a").values(TABLE)).tolist() == [False, True, False]
    assert np.isnan(Score("log(a)").values(TABLE)).tolist() == [False, False, True]
    assert Score("b / a").values(TABLE)[1] == math.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "cannot read it at character"),
        ("", "cannot read it at character"),
        ("1 + 2", "names no column"),
        ("a + 'x'", "\"'x'\" at character 5 is not allowed; only numbers, columns, + - * / ** and functions are"),
        ("a // b", "'a // b' at character 1 is not allowed"),
        ("a if b else 1", "'a if b else 1' at character 1 is not allowed"),
        ("a.b", "'a.b' at character 1 is not allowed"),
        ("a > b", "'a > b' at character 1 is not allowed"),
        ("not a", "'not a' at character 1 is not allowed"),
        ("a + True", "'True' at character 5 is not allowed"),
        ("a + 1j", "'1j' at character 5 is not allowed"),
        ("ä + sin(a)", "'sin(a)' at character 5 is not allowed; only the functions abs, sqrt, log, exp, min, max are"),
        ("`total price` + sin(a)", "'sin(a)' at character 17 is not allowed"),
        ("abs(a, b)", "only one argument for abs() are"),
        ("min(a)", "only two arguments or more for min() are"),
        ("min(a, key=b)", "'min(a, key=b)' at character 1 is not allowed"),
        ("__import__('os')", "is not allowed; only the functions"),
        ("a * 1" + "0" * 400, "only numbers within float64 are"),
        ("a # b", "cannot read '#'"),
        ("`a + b", "cannot read it at character"),
    ],
)
def test_what_is_not_arithmetic_is_refused_with_its_place(text: str, message: str):
    with pytest.raises(ConfigError) as error:
        Score(text)
    assert message in str(error.value)


def test_of_takes_a_score_or_its_text():
    score = Score("a")
    assert Score.of(score) is score
    assert Score.of("a") == score
    with pytest.raises(ConfigError, match=r"a score is text such as .* got 3"):
        Score.of(3)  # type: ignore[arg-type]


def test_columns_in_order_each_once():
    assert Score("b + min(a, `total price`) * b").columns == ("b", "a", "total price")


def test_equal_scores_have_equal_texts():
    assert Score("a+(b*2)") == Score(" a + b * 2 ")
    assert str(Score("`a`-`total price`")) == "a - `total price`"
    assert Score("(a - b) - d") == Score("a - b - d") != Score("a - (b - d)")


@given(st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=8))
def test_any_column_name_survives_in_backticks(name: str):
    score = Score("`" + name.replace("`", "``") + "` * 2 + `other one`")
    again = pickle.loads(pickle.dumps(score))  # noqa: S301
    assert again == score
    assert Score(str(score)) == score
    table = pa.table({name: [1.0], "other one": [0.5]})
    assert score.values(table).tolist() == again.values(table).tolist() == [2.5]


def test_columns_keep_their_spelling():
    assert Score("größe + \ufb01 * 2").columns == ("größe", "\ufb01")  # a ligature, whose normal form is "fi"


def test_stand_ins_for_quoted_columns_meet_no_column_of_their_name():
    table = pa.table({"x y": [1.0], "_0___": [10.0]})
    assert Score("`x y` + _0___").values(table).tolist() == [11.0]


def test_validate():
    Score("a + b + c + d").validate(TABLE.schema)
    with pytest.raises(ConfigError, match="column 'text' of type string is no number, so 'text' cannot be computed"):
        Score("text").validate(TABLE.schema)
    with pytest.raises(ConfigError, match="column 'e' does not exist"):
        Score("e").validate(TABLE.schema)


def test_null_is_refused_by_column():
    with pytest.raises(BadInputError, match="column 'a' is null in 1 rows"):
        Score("a").values(pa.table({"a": [1.0, None]}))


def test_no_rows():
    assert Score("a + 1").values(TABLE.slice(0, 0)).tolist() == []
