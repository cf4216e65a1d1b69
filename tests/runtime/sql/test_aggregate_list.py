from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skypane as sp
from skypane.operators.aggregates.functions import Function
from skypane.runtime.spark.sql.aggregate_list import functions_of
from skypane.types import ConfigError

WRITTEN: list[tuple[str, str, Function]] = [
    ("count(*)", "count(*)", sp.count()),
    ("count(*) AS n", "n", sp.count()),
    ("count() as `the number`", "the number", sp.count()),
    ("sum(amount)", "sum(amount)", sp.sum("amount")),
    ("avg(amount, where=paid == 'a, b') AS mean", "mean", sp.avg("amount", where="paid == 'a, b'")),
    ("avg(amount) FILTER (WHERE paid == 'a, (b') AS some", "some", sp.avg("amount", where="paid == 'a, (b'")),
    ("count(*) filter ( where (amount > 1) and (amount < 3) )", "count(*) filter ( where (amount > 1) and (amount < 3) )",
     sp.count(where="(amount > 1) and (amount < 3)")),
    ("count(*) FILTER (WHERE paid == 'it\\'s, so') AS some", "some", sp.count(where="paid == 'it\\'s, so'")),
    ("percentile(amount, [0.5, 0.9]) AS p", "p", sp.percentile("amount", [0.5, 0.9])),
    ("max_by(city, amount) AS dearest", "dearest", sp.max_by("city", "amount")),
    ("count(*) FILTER (WHERE city LIKE 'B%') AS of_spark", "of_spark", sp.count(where="city LIKE 'B%'")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "name", "function"), WRITTEN)
def test_a_function_is_that_of_python(text: str, name: str, function: Function):
    assert functions_of(text) == {name: function}


@given(
    st.lists(st.sampled_from(WRITTEN), min_size=1, unique_by=lambda one: one[1]), st.sampled_from([",", ", ", " ,\n"])
)
def test_functions_are_separated_by_commas(written: list[tuple[str, str, Function]], comma: str):
    text = comma.join(text for text, _, _ in written)
    assert functions_of(text) == {name: function for _, name, function in written}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "functions: '' has a place without a function"),
        ("count(*),,sum(x)", "has a place without a function"),
        ("count(*) AS n, sum(x) AS n", "'n' is twice the name of a column"),
        ("total", "functions: 'total' is not an aggregate function"),
        ("in_order(os.getcwd, x, returns=int64)", "os.getcwd names code of a module"),
    ],
)
def test_an_error_names_the_function(text: str, message: str):
    with pytest.raises(ConfigError, match="functions: ") as refused:
        functions_of(text)
    assert message in str(refused.value)
