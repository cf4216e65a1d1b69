from __future__ import annotations

import copy

import pyarrow as pa
import pytest

from skypane.preference import Score, column_name, low
from skypane.preference.written import expressions, named
from skypane.types import ConfigError


class Shown:
    """What is known here of a Spark Column: how it shows itself."""

    def __init__(self, shown: str) -> None:
        self.shown = shown

    def eqNullSafe(self, other: object, /) -> object:
        return other

    def __str__(self) -> str:
        return f"Column<'{self.shown}'>"


def test_a_column_of_spark_is_its_name():
    assert column_name(Shown("total price"), "by") == "total price"
    assert low(Shown("price")) == low("price")


@pytest.mark.parametrize(("shown", "text"), [
    ("rating", "rating"),
    ("-(rating, *(price, 0.1))", "rating - 0.1 * price"),
    ("-(1, price)", "1 - price"),
    ("negative(price)", "-price"),
    ("*(price, -2)", "price * -2"),
    ("/(2, ln(price))", "2 / log(price)"),
    ("power(price, 2)", "price ** 2"),
    ("least(price, rating, 3)", "min(price, rating, 3)"),
    ("+(+(a, b), sqrt(abs(c)))", "a + b + sqrt(abs(c))"),
    ("-(a, -(b, c))", "a - (b - c)"),
    ("*(1.5E-7, a)", "0.00000015 * a"),
])  # fmt: skip
def test_arithmetic_of_spark_is_a_score(shown: str, text: str):
    values = {"rating": 4.0, "price": 0.5, "a": 7.0, "b": 2.0, "c": -9.0}
    table = pa.table({name: [value] for name, value in values.items()})
    assert Score.of(Shown(shown)).values(table) == pytest.approx(Score.of(text).values(table))


@pytest.mark.parametrize("shown", [
    "price AS x", ">(price, 1)", "a b", "log(2.0, price)", "f(x", "f(x))", "CASE WHEN a THEN b END"
])  # fmt: skip
def test_a_column_that_a_score_cannot_hold_is_for_spark_to_compute(shown: str):
    column = Shown(shown)
    (written,) = expressions(Score.of(column))
    assert (written.sql, written.column, written.argument) == (shown, column, "score")
    for name in ("it", "or", "a b", "log"):
        score = named(Score.of(column), {written.key: name})
        assert score.values(pa.table({name: [4.0]})).tolist() == [4.0]
        assert not [*expressions(score)]


@pytest.mark.parametrize("text", ["CASE WHEN a THEN b END", "upper(a)", "a % 2", "a > 1", "a +"])
def test_a_text_as_a_score_is_arithmetic_alone(text: str):
    with pytest.raises(ConfigError, match="score"):
        Score.of(text)


def test_a_copied_score_of_a_column_knows_its_text_alone():
    again = copy.deepcopy(Score.of(Shown("a % 2")))
    assert again == Score.of(Shown("a % 2"))
    assert [written.column for written in expressions(again)] == [None]


@pytest.mark.parametrize("value", [3, None, b"price", object])
def test_anything_else_names_no_column(value: object):
    with pytest.raises(ConfigError, match=r"low\(\) must name a column"):
        low(value)  # type: ignore[arg-type]
