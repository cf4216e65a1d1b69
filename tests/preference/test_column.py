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


@pytest.mark.parametrize("shown", [
    "price", "2", "-(rating, *(price, 0.1))", "price AS x", ">(price, 1)", "a b", "f(x", "CASE WHEN a THEN b END"
])  # fmt: skip
def test_spark_computes_each_column_that_is_a_score(shown: str):
    """How it shows itself is not read: F.lit("price") shows itself as F.col("price") does."""
    column = Shown(shown)
    (written,) = expressions(Score.of(column))
    assert (written.sql, written.column, written.argument) == (shown, column, "score")
    for name in ("it", "or", "a b", "log"):
        score = named(Score.of(column), {written.key: name})
        assert score.values(pa.table({name: [4.0]})).tolist() == [4.0]
        assert not [*expressions(score)]


@pytest.mark.parametrize(
    "text", ["CASE WHEN a THEN b END", "log2(a)", "a % 2", "a > 1", "a +", "`a` || b", "greatest(a, b)"]
)
def test_spark_computes_a_text_that_is_more_than_arithmetic(text: str):
    (written,) = expressions(Score.of(text))
    assert (written.sql, written.column, written.argument) == (text, None, "score")
    score = named(Score.of(text), {written.key: "a b"})
    assert score.values(pa.table({"a b": [4.0]})).tolist() == [4.0]


def test_a_text_that_sql_reads_otherwise_is_refused():
    with pytest.raises(ConfigError, match=r"score 'a --b': -- begins a comment in SQL; write a - \(-b\)"):
        Score.of("a --b")
    assert Score.of("`a--b` - -b").columns == ("a--b", "b")
    with pytest.raises(ConfigError, match="score ''"):
        Score.of("")


def test_a_copied_score_of_a_column_knows_its_text_alone():
    again = copy.deepcopy(Score.of(Shown("a % 2")))
    assert again == Score.of(Shown("a % 2"))
    assert [written.column for written in expressions(again)] == [None]


@pytest.mark.parametrize("value", [3, None, b"price", object])
def test_anything_else_names_no_column(value: object):
    with pytest.raises(ConfigError, match=r"low\(\) must name a column"):
        low(value)  # type: ignore[arg-type]
