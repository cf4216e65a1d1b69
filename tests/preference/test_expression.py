from __future__ import annotations

import numpy as np
import pytest

from skypane.preference.expression import Expression
from skypane.types import ConfigError


def test_columns_come_in_the_order_written():
    assert list(Expression("b + min(a, `total price`) * b").columns()) == ["b", "a", "total price", "b"]


def test_a_function_is_not_a_column():
    assert list(Expression("min(min, 2)").columns()) == ["min"]
    assert Expression("min(min, 2)").evaluate({"min": np.array([1.0, 3.0])}).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a+(b*2)", "a + b * 2"),
        ("(a-b)-c", "a - b - c"),
        ("a-(b-c)", "a - (b - c)"),
        ("`a`+\n`b c`", "a + `b c`"),
        ("max( `max`,`if` )", "max(max, `if`)"),
    ],
)
def test_canonical(text: str, canonical: str):
    assert Expression(text).canonical() == canonical
    assert Expression(canonical).canonical() == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "cannot read it at character"),
        ("", "cannot read it at character"),
        ("a + 'x'", "\"'x'\" at character 5 is not allowed; write numbers, columns, + - * / ** and abs"),
        ("a // b", "'a // b' at character 1 is not allowed"),
        ("a if b else 1", "'a if b else 1' at character 1 is not allowed"),
        ("a.b", "'a.b' at character 1 is not allowed"),
        ("a > b", "'a > b' at character 1 is not allowed"),
        ("not a", "'not a' at character 1 is not allowed"),
        ("a + True", "'True' at character 5 is not allowed"),
        ("a + 1j", "'1j' at character 5 is not allowed"),
        ("ä + sin(a)", "'sin(a)' at character 5 is not allowed; the functions are abs, sqrt, log, exp, min, max"),
        ("`total price` + sin(a)", "'sin(a)' at character 17 is not allowed"),
        ("abs(a, b)", "abs() takes one argument"),
        ("min(a)", "min() takes two arguments or more"),
        ("min(a, key=b)", "'min(a, key=b)' at character 1 is not allowed"),
        ("__import__('os')", "is not allowed; the functions are"),
        ("a * 1" + "0" * 400, "it is beyond float64"),
        ("a # b", "cannot read '#'"),
        ("`a + b", "cannot read it at character"),
    ],
)
def test_what_is_not_arithmetic_is_refused_with_its_place(text: str, message: str):
    with pytest.raises(ConfigError) as error:
        Expression(text)
    assert message in str(error.value)


def test_columns_keep_their_spelling():
    ligature = "\ufb01"  # whose normal form is "fi"
    assert list(Expression(f"größe + {ligature} * 2").columns()) == ["größe", ligature]


def test_placeholders_for_quoted_columns_meet_no_column_of_their_name():
    columns = {"x y": np.array([1.0]), "_0___": np.array([10.0])}
    assert Expression("`x y` + _0___").evaluate(columns).tolist() == [11.0]


@pytest.mark.parametrize(
    "text", ["(" * 5_000 + "a" + ")" * 5_000, "-" * 100_000 + "a", "+".join(["a"] * 30_000), "abs(" * 150 + "-a" * 150]
)
def test_what_is_too_deep_is_reported_in_a_short_sentence(text: str):
    with pytest.raises(ConfigError) as error:
        Expression(text)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("text", ["+".join(["a"] * 200), "abs(" * 199 + "a" + ")" * 199, "-" * 199 + "a"])
def test_as_deep_as_is_allowed(text: str):
    expression = Expression(text)
    assert Expression(expression.canonical()).evaluate({"a": np.array([1.0])}) == expression.evaluate(
        {"a": np.array([1.0])}
    )


def test_one_deeper_names_the_limit():
    with pytest.raises(ConfigError, match="more than 200 nested operations; compute parts of it"):
        Expression("+".join(["a"] * 201))
