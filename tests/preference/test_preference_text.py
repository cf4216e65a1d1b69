from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.preference import Preference, around, diff, high, low, parse
from skypane.types import ConfigError


@pytest.mark.parametrize(
    ("text", "preference"),
    [
        ("price MIN, rating MAX, city DIFF", low("price") * high("rating") * diff("city")),
        ("price min,rating mAx", low("price") * high("rating")),
        (" size AROUND 40 ", around("size", 40)),
        ("size around -4.5e1", around("size", -45)),
        ("size AROUND 30 TO 40", around("size", (30, 40))),
        ("day AROUND '2013-01-01'", around("day", date(2013, 1, 1))),
        ("ts AROUND '2013-01-01T12:00:00Z'", around("ts", datetime(2013, 1, 1, 12, tzinfo=UTC))),
        ("`total price` MIN, \"a\"\"b\" MAX, 'it''s' MIN", low("total price") * high('a"b') * low("it's")),
        ("min MIN, to MAX", low("min") * high("to")),
        ("größe MIN", low("größe")),
        ("a MIN, b MAX PRIOR TO c MIN", low("a") * high("b") & low("c")),
        ("(a MIN PRIOR TO b MAX), c MIN", (low("a") & high("b")) * low("c")),
        ("((a MIN))\nprior to\tb MIN", low("a") & low("b")),
        ("price * 2 MIN, least(a, b) MAX", low("price * 2") * high("least(a, b)")),
        ("(a + b) MIN, (c MIN, d MAX)", low("(a + b)") * low("c") * high("d")),
        ("((a - b) MIN PRIOR TO c MAX), d / 2 MIN", (low("(a - b)") & high("c")) * low("d / 2")),
        (
            "upper(city) DIFF, CASE WHEN a > 1 THEN b ELSE 'x, MIN' END MIN",
            diff("upper(city)") * low("CASE WHEN a > 1 THEN b ELSE 'x, MIN' END"),
        ),
        ("price-2 MIN, rating +1 AROUND -3 TO -1", low("price-2") * around("rating +1", (-3, -1))),
        ("nanvl(b, 0D) MIN, n % 3L MAX", low("nanvl(b, 0D)") * high("n % 3L")),
        ("a.b AROUND 3 TO 4 PRIOR TO -price MIN", around("a.b", (3, 4)) & low("-price")),
    ],
)
def test_reads(text, preference):
    assert parse(text) == preference


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a column at character 1, got the end"),
        ("price", "expected MIN, MAX, DIFF or AROUND after column 'price' at character 6, got the end"),
        ("price LOWEST", "expected MIN, MAX, DIFF or AROUND after column 'price' at character 7, got LOWEST"),
        ("price MIN rating MAX", "expected a comma, PRIOR TO or the end at character 11, got rating"),
        ("price rating MIN", "expected MIN, MAX, DIFF or AROUND after column 'price' at character 7, got rating"),
        ("price * 2", "expected MIN, MAX, DIFF or AROUND after column 'price' at character 7, got *"),
        ("price * 2, rating MAX", "expected MIN, MAX, DIFF or AROUND after column 'price' at character 7, got *"),
        ("price * (2 MIN", "expected MIN, MAX, DIFF or AROUND after column 'price' at character 7, got *"),
        ("price MIN,", "expected a column at character 11, got the end"),
        ("price MIN PRIOR b MIN", "expected TO at character 17, got b"),
        ("(price MIN", "expected ) at character 11, got the end"),
        ("size AROUND big", "expected a number, or a quoted ISO date or time, at character 13, got big"),
        ("size AROUND 'noon'", "expected a number, or a quoted ISO date or time, at character 13, got 'noon'"),
        ("size AROUND 40x", "expected a number, or a quoted ISO date or time, at character 13, got 40x"),
        ("price ; MIN", "cannot read character 7, ';'"),
        ("`price MIN", "cannot read character 1, '`'"),
        ("3 MIN", "expected a column at character 1, got 3"),
    ],
)
def test_an_error_names_the_place_that_cannot_be_parsed(text: str, message: str):
    with pytest.raises(ConfigError) as error:
        parse(text)
    assert f"preference {text!r}: {message}" in str(error.value)


def test_refusals_of_the_algebra_hold_for_text_too():
    with pytest.raises(ConfigError, match="named twice"):
        parse("a MIN, a MAX")
    with pytest.raises(ConfigError, match="cannot be a factor"):
        parse("(a MIN, b MIN PRIOR TO c MIN), d MIN")


@given(st.text(min_size=1))
def test_any_column_name_survives(name: str):
    assert parse(str(high(name))) == high(name)


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.dates() | st.datetimes())
def test_any_target_survives(target):
    assert parse(str(around("x", target))) == around("x", target)


def test_parentheses_within_parentheses_are_read_down_to_a_limit():
    assert parse("(" * 50 + "a MIN" + ")" * 50) == low("a")
    with pytest.raises(ConfigError, match="more than 50 nested parentheses"):
        parse("(" * 51 + "a MIN" + ")" * 51)
    with pytest.raises(ConfigError, match="more than 50 nested parentheses"):
        parse("(" * 100_000)


def test_parentheses_beside_each_other_are_not_counted():
    assert parse(", ".join(f"(c{index} MIN)" for index in range(60))).ranked[-1] == "c59"


def test_the_work_for_each_criterion_does_not_grow_with_their_number():
    made = []
    built = Preference.__post_init__

    def counted(preference):
        made.append(len(preference.columns))
        built(preference)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Preference, "__post_init__", counted)
        with pytest.raises(ConfigError, match="5000 criteria in one Pareto product"):
            parse(", ".join(f"c{index} MIN" for index in range(5_000)))
    assert len(made) == 5_001
    assert sum(made) < 5 * 5_000  # columns looked at, each criterion's own and the product's
