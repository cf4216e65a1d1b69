"""Aggregates against their meaning, row by row; and the laws of a query."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.operators.aggregates.oracle import FUNCTIONS, MEANINGS, groups
from tests.operators.aggregates.tables import INF, NAN, SCHEMA, VALUES, drawn, tables
from tests.oracles import cut_off
from tests.parameters import examples

import skypane as sp
from skypane.operators.aggregates import aggregate
from skypane.operators.aggregates.condition import Condition
from skypane.operators.aggregates.wide_states import DistinctPart
from skypane.operators.open_panes import OpenPanes
from skypane.operators.window_query import WindowQuery
from skypane.preference.written import expressions
from skypane.testing import check_query
from skypane.types import BadInputError, ConfigError
from skypane.windows import Windows

BY = ["key", "grade"]
ALL = sp.Aggregate(BY, time="at", **FUNCTIONS)


def answer(query: sp.Aggregate, rows: pa.Table) -> pa.Table:
    return query.lower(query.combine([query.lift(rows)]))


def same(found: Any, wanted: Any, lost: float = 0.0) -> bool:
    """Equal, or numbers as near as rounding a mean or a root of them leaves, and what a sum has `lost`; -0.0 is 0.0."""
    if isinstance(found, float) and isinstance(wanted, float | int):
        close = math.isclose(found, wanted, rel_tol=1e-12, abs_tol=lost)
        return close or (math.isnan(found) and math.isnan(wanted))
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    return bool(found == wanted)


@given(tables())
@example(pa.Table.from_pylist([{"f": value, "at": VALUES["at"][0]} for value in (1e16, -1e16, 1e-9)], schema=SCHEMA))
def test_every_function_returns_its_definition(rows: pa.Table):
    wanted = groups(rows.to_pylist(), BY)
    found = {
        tuple(value for name, value in row.items() if name in BY): row
        for row in groups_of(answer(ALL, rows).to_pylist())
    }
    assert len(found) == len(wanted)
    for key, members in wanted.items():
        for name, (_, meaning) in MEANINGS.items():
            wants = meaning(members)
            assert same(found[key][name], wants, lost_bits(name, members)), (name, found[key][name], wants)


def lost_bits(name: str, members: list[dict[str, Any]]) -> float:
    """What a sum or a mean of f may lose beside its last place."""
    numbers = [row["f"] for row in members if row["f"] is not None and math.isfinite(row["f"])]
    if name not in {"sum_f", "avg_f"} or not numbers:
        return 0.0
    return float(cut_off(numbers) / (len(numbers) if name == "avg_f" else 1))


def groups_of(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers, their keys written as the oracle does."""
    return [
        {**row, "grade": "NaN" if row["grade"] is not None and math.isnan(row["grade"]) else row["grade"]}
        for row in answers
    ]


@pytest.mark.long
@given(tables())
@settings(max_examples=examples(1 / 3))
def test_aggregates_keep_the_laws(rows: pa.Table):
    check_query(ALL, rows, tries=1)


@pytest.mark.long
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_by_itself_keeps_the_laws(name: str):
    rng = np.random.default_rng(3)
    check_query(sp.Aggregate(time="at", **{name: FUNCTIONS[name]}), drawn(rng, 40), tries=2)


@pytest.mark.long
@pytest.mark.parametrize(("length", "slide"), [(60, 1), (60, 7), (12, 12), (10, 4)])
@pytest.mark.parametrize("by", ["grade", BY, []])
def test_windows_share_merges_and_answer_as_if_they_did_not(length: int, slide: int, by: list[str]):
    """Some keys come and go, so that they are numbered again; to the bit."""
    rng = np.random.default_rng(length + slide)
    rows, windows = drawn(rng, 300), Windows(length, slide)
    names = {name: function for name, function in FUNCTIONS.items() if not function.in_time("at").accumulators(SCHEMA)}
    query = sp.Aggregate(by, time="at", **names)
    at = windows.panes_at(np.sort(rng.integers(0, 150, rows.num_rows)))
    panes = {pane: query.lift(rows.filter(pa.array(at == pane))) for pane in set(at.tolist())}
    assert_shared_as_direct(query, windows, sorted(panes.items()))


def assert_shared_as_direct(query: sp.Aggregate, windows: Windows, panes: Iterable[tuple[int, pa.Table]]) -> None:
    """A worker of all windows answers each as one merge of its panes does."""
    held: OpenPanes[pa.Table] = OpenPanes.empty(windows).add(panes)
    worker = WindowQuery(query, windows, None).worker()
    for task in held.all_windows():
        direct = query.lower(query.combine([partial for _, (partial,) in task.panes]))
        shared = worker.answer(task, lambda partial: partial).rows.drop(["window_start", "window_end"])
        assert sorted(map(repr, shared.to_pylist())) == sorted(map(repr, direct.to_pylist()))


SIZES = (1.0, 1e-9, 1e4, 0.0, 1e30, -1e30, 1e300, 5e-324, INF, NAN)
"""Numbers that are summed: of one size, of two beside each other, and too different for one grid, or not finite."""


@pytest.mark.long
@given(st.lists(st.sampled_from(SIZES), min_size=8, max_size=30), st.integers(2, 6))
@settings(max_examples=examples(2))
def test_sums_of_any_size_come_and_go_and_leave_nothing_behind(sizes: list[float], length: int):
    """A pane for each, of two keys; sums are on a grid, lie in stacks, and are on a grid again: to the bit."""
    windows = Windows(length, 1)
    query = sp.Aggregate("key", total=sp.sum("x"), spread=sp.variance("x"), n=sp.count(), least=sp.min("x"))
    panes = [
        query.lift(pa.table({"key": [1, 2 + pane % 3], "x": [0.1 * size, size * (pane - 7) / 3]}))
        for pane, size in enumerate(sizes)
    ]
    assert_shared_as_direct(query, windows, enumerate(panes))


def test_a_number_of_another_size_does_not_stack_sums_forever():
    query = sp.Aggregate("key", total=sp.sum("x"))
    panes = [query.lift(pa.table({"key": [1], "x": [x]})) for x in (1.0, 2.0, 1e300, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)]
    queue = query.queue(panes[0].schema, 3)
    assert queue is not None
    stacked = []
    for pane, partial in enumerate(panes):
        queue.evict_before(pane - 2)
        queue.push(pane, partial)
        stacked.append(queue._split.stacked_width > 0)
    assert stacked[:3] == [False, False, True]
    assert not stacked[-1]


@pytest.mark.parametrize("x", [INF, NAN, 1e300])
def test_sums_that_lie_in_stacks_may_all_be_gone_after_a_gap(x: float):
    query = sp.Aggregate("key", total=sp.sum("x"))
    panes = {0: [1.0, x], 9: [2.0, 3.0]}
    lifted = [(pane, query.lift(pa.table({"key": [1, 2], "x": xs}))) for pane, xs in panes.items()]
    windows = Windows(3, 2)
    held: OpenPanes[pa.Table] = OpenPanes.empty(windows).add((windows.pane_at(time), one) for time, one in lifted)
    worker = WindowQuery(query, windows, None).worker()
    answers = list(worker.answers(held.all_windows(), lambda partial: partial))
    assert answers[-1].rows["total"].to_pylist() == [2.0, 3.0]


def test_panes_lifted_together_or_in_groups_are_the_same(monkeypatch: pytest.MonkeyPatch):
    rows = drawn(np.random.default_rng(5), 200)
    starts = [0, 3, 3, 50, 51, 120, 199]
    whole = ALL.lift_panes(rows, starts)
    monkeypatch.setattr(aggregate, "TOGETHER", 40)
    parts = ALL.lift_panes(rows, starts)
    assert len(parts) == len(whole) == len(starts)
    for one, other in zip(parts, whole, strict=True):
        assert repr(ALL.lower(one).to_pylist()) == repr(ALL.lower(other).to_pylist())


def test_functions_that_need_the_same_sum_share_it():
    functions_of: list[dict[str, Any]] = [
        {"v": sp.variance("f")},
        {"v": sp.variance("f"), "s": sp.sum("f"), "a": sp.avg("f")},
    ]
    one, three = (
        sp.Aggregate(**functions).lift(SCHEMA.empty_table()).schema.field("state").type.list_size
        for functions in functions_of
    )
    assert one == three


@pytest.mark.parametrize(
    ("values", "outcome"),
    [([2**62, 2**62 - 1, 2**62, -(2**62)], 2**63 - 1), ([-(2**62), -(2**62)], -(2**63)), ([2**62, 2**62], None)],
)
def test_a_sum_of_integers_is_exact_or_an_error_whatever_is_on_the_way(values: list[int], outcome: int | None):
    query, rows = sp.Aggregate(total=sp.sum("x")), pa.table({"x": values})
    if outcome is None:
        with pytest.raises(BadInputError, match="sum of column 'x' does not fit into 64 bits: cast it to double"):
            answer(query, rows)
    else:
        assert answer(query, rows).to_pylist() == [{"total": outcome}]


def test_whole_numbers_beyond_53_bits_are_rounded_where_the_answer_is_a_double():
    query = sp.Aggregate(spread=sp.var_pop("x"), median=sp.approx_quantile("x", 0.5, error=0.01))
    found = answer(query, pa.table({"x": [2**60 + 1, 2**60 + 2**40, 2**60 + 2**41]})).to_pylist()[0]
    assert found["spread"] == pytest.approx(2**80 * 2 / 3)
    assert found["median"] == pytest.approx(2**60, rel=0.01)


@pytest.mark.parametrize("value", ["number", "text"])
def test_zeros_of_both_signs_are_one_order(value: str):
    rows = pa.table({"x": [0.0, -0.0, -1.0], "number": [7, 3, 9], "text": ["g", "c", "i"]})
    query = sp.Aggregate(largest=sp.max_by(value, "x"), last=sp.last(value, order="x"), least=sp.max("x"))
    found = query.lower(query.combine([query.lift(rows.slice(row, 1)) for row in (2, 0, 1)])).to_pylist()[0]
    assert found["largest"] == found["last"] == {"number": 3, "text": "c"}[value]


def test_a_function_over_a_keys_rows_sees_them_in_order():
    steps = sp.in_order(_steps, "f", returns=pa.list_(pa.float64()), order="i")
    rows = pa.table({"key": ["a", "b", "a", "a"], "i": [3, 1, 1, 2], "f": [0.5, 9.0, 1.0, None]})
    query = sp.Aggregate("key", steps=steps)
    assert sorted(answer(query, rows).to_pylist(), key=str) == [
        {"key": "a", "steps": [1.0, None, 0.5]},
        {"key": "b", "steps": [9.0]},
    ]
    check_query(query, rows, tries=5)


def _steps(rows: pa.Table) -> Any:
    return rows["f"].to_pylist()


@pytest.mark.parametrize(
    ("by", "functions", "complaint"),
    [
        ([], {}, "need at least one aggregate function"),
        ([], {"n": 3}, "n= must be an aggregate function such as"),
        ("key", {"Key": sp.count()}, "'Key' is a column of by and an aggregate"),
        ([], {"n": sp.sum("text")}, "sum of column 'text' of type string: it holds no numbers"),
        ([], {"n": sp.avg("money")}, "decimals are not summed exactly; cast it to double"),
        ([], {"n": sp.sum("flag")}, "sum of column 'flag' of type bool"),
        ([], {"n": sp.bool_and("i")}, "bool_and of column 'i' of type int64: it holds no truth values"),
        ([], {"n": sp.bool_or("text")}, "bool_or of column 'text' of type string: it holds no truth values"),
        ([], {"n": sp.mode("tags")}, r"column 'tags' of type list<item: int64> has no order"),
        ([], {"n": sp.median("text")}, "a percentile of column 'text' of type string: it holds no numbers"),
        ([], {"n": sp.percentile("at", 0.5)}, "a percentile of column 'at' of type timestamp"),
        ([], {"n": sp.percentile_approx("flag", 0.5)}, "a percentile of column 'flag' of type bool"),
        ([], {"n": sp.max("tags")}, r"column 'tags' of type list<item: int64> has no order"),
        ("tags", {"n": sp.count()}, "column 'tags' of type list<item: int64> cannot form groups"),
        ([], {"n": sp.count("fx")}, "column 'fx' does not exist; did you mean 'f'"),
        ([], {"n": sp.count(where="f > 'x'")}, "where=\"f > 'x'\" cannot be evaluated"),
        ([], {"n": sp.count(where="f")}, "where='f' is of type double, not boolean"),
    ],
)
def test_invalid_aggregates_are_refused_when_validated(by: Any, functions: Any, complaint: str):
    schema = SCHEMA.append(pa.field("money", pa.decimal128(10, 2))).append(pa.field("tags", pa.list_(pa.int64())))
    with pytest.raises(ConfigError, match=complaint):
        sp.Aggregate(by, **functions).validate(schema)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: sp.percentile("f", 1.5), r"percentages must lie between 0 and 1, got \(1.5,\)"),
        (lambda: sp.percentile("f", []), r"percentages must lie between 0 and 1, got \(\)"),
        (lambda: sp.percentile_approx("f", [0.5, float("nan")]), "percentages must lie between 0 and 1"),
        (lambda: sp.percentile_approx("f", 0.5, 0), "accuracy must be at least 1, got 0"),
    ],
)
def test_a_percentile_is_of_a_share(make: Callable[[], Any], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        make()


def test_functions_of_the_same_values_share_their_state():
    of_counts = {
        "m": sp.mode("f"),
        "p": sp.median("f"),
        "q": sp.percentile("f", [0.1]),
        "a": sp.percentile_approx("f", 0.9),
    }
    of_values = {"n": sp.count_distinct("f"), "all": sp.collect_set("f")}
    functions: dict[str, Any] = {**of_counts, **of_values}
    columns = sp.Aggregate(**functions).lift(SCHEMA.empty_table()).column_names
    assert columns == ["state", "state_0", "state_1"]


def test_decimals_have_a_mode_and_percentiles_among_them():
    money = pa.array([Decimal("1.10"), Decimal("2.20"), Decimal("2.20"), None], pa.decimal128(10, 2))
    query = sp.Aggregate(often=sp.mode("x"), low=sp.percentile_approx("x", 0.25), all=sp.collect_set("x"))
    assert answer(query, pa.table({"x": money})).to_pylist() == [
        {"often": Decimal("2.20"), "low": Decimal("1.10"), "all": [Decimal("1.10"), Decimal("2.20")]}
    ]


def test_a_percentile_beside_an_infinity_is_that_of_spark():
    rows = pa.table({"x": [-INF, 1.0, INF, INF]})
    query = sp.Aggregate(p=sp.percentile("x", [0.0, 0.25, 0.5, 1.0]), taken=sp.percentile_approx("x", [0.25, 0.5]))
    found = answer(query, rows).to_pylist()[0]
    assert same(found["p"], [-INF, NAN, INF, INF])
    assert found["taken"] == [-INF, 1.0]


@pytest.mark.parametrize("function", [sp.first("f"), sp.last("f"), sp.collect_list("f")])
def test_a_function_with_an_order_needs_one(function: Any):
    with pytest.raises(ConfigError, match="name its column as order=, or as time= of the query"):
        sp.Aggregate(n=function)


@pytest.mark.parametrize(
    ("where", "complaint"),
    [
        ("f >", "where='f >': it ends too early"),
        ("__import__('os')", r"where=.*: \"\('os'\)\" is not allowed"),
        ("f.real > 1", "'f.real > 1' is not allowed"),
        ("f in (i, 1)", "is not allowed"),
        ("f is None", "is not allowed"),
        ("0 < f < 1", "is not allowed"),
        ("f > 1 and [f for f in i]", "is not allowed"),
    ],
)
def test_a_condition_is_read_strictly_and_its_error_names_the_argument(where: str, complaint: str):
    """What is not read so is SQL in `where`, and in `having`, which Spark evaluates; workers have no SQL."""
    with pytest.raises(ConfigError, match=complaint):
        Condition(where)
    assert [written.sql for written in expressions(sp.count(where=where))] == [where]
    with pytest.raises(ConfigError, match=complaint.replace("where=", "having=")):
        sp.Aggregate(n=sp.count(), having=where).validate(SCHEMA)
    assert sp.Aggregate(n=sp.count(), having=where).choice.by_spark == where


@pytest.mark.parametrize(
    ("having", "complaint"),
    [
        ("n > 'x'", r"^having=\"n > 'x'\" cannot be evaluated without Spark \(n is int64\)"),
        ("n", "^having='n' is of type int64, not boolean"),
        (3, "^having= must be a text such as 'total > 100', or a Spark Column, got 3"),
    ],
)
def test_an_error_of_having_names_it(having: Any, complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        sp.Aggregate(n=sp.count(), having=having).validate(SCHEMA)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("x > 1", [2]),
        ("not x > 1", [1]),
        ("x IS NULL", [3]),
        ("x IS NOT NULL and x != 2", [1]),
        ("x not in (1, 5)", [2]),
        ("0 < x and x <= 1", [1]),
        ("0 < x AND x in (1, 5)", [1]),
        ("NOT (x IS NULL)", [1, 2]),
        ("`a b` == 'q' or x == 2", [1, 2]),
        ("x > -9223372036854775808", [1, 2]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_is_true(where: str, kept: list[int]):
    rows = pa.table({"id": [1, 2, 3], "x": [1, 2, None], "a b": ["q", None, None]})
    query = sp.Aggregate(ids=sp.collect_list("id", order="id", where=where))
    assert answer(query, rows).to_pylist() == [{"ids": kept}]


def test_nan_is_compared_as_spark_does():
    rows = pa.table({"x": [NAN, 1.0, None], "y": [NAN, NAN, NAN]})
    conditions = ["x > 0", "x == y", "x < y", "x >= y", "x != 1", "x <= 1"]
    functions: dict[str, Any] = {f"c{number}": sp.count(where=text) for number, text in enumerate(conditions)}
    assert list(answer(sp.Aggregate(**functions), rows).to_pylist()[0].values()) == [2, 1, 1, 1, 1, 1]


def test_infinities_and_nan_are_values():
    rows = pa.table({"x": [INF, 1.0, NAN, None]})
    query = sp.Aggregate(low=sp.min("x"), high=sp.max("x"), different=sp.count_distinct("x"), n=sp.count("x"))
    (found,) = answer(query, rows).to_pylist()
    assert (found["low"], math.isnan(found["high"]), found["different"], found["n"]) == (1.0, True, 3, 3)


def test_having_and_top_choose_rows_of_each_window_before_they_are_written():
    rows = pa.table({"key": ["a", "b", "c", "d", "d"], "x": [5, 1, 5, 4, None]})
    functions_of: dict[str, Any] = {"n": sp.count(), "total": sp.sum("x")}
    by_hand = {
        "having": (sp.Aggregate("key", having="total > 4 or n == 2", **functions_of), {"a", "c", "d"}),
        "top": (sp.Aggregate("key", top=2, rank_by="total", **functions_of), {"a", "c"}),
        "ties by content": (sp.Aggregate("key", top=1, rank_by="total", **functions_of), {"a"}),
        "both": (sp.Aggregate("key", having="n == 1", top=3, rank_by="total", **functions_of), {"a", "b", "c"}),
    }
    for query, wanted in by_hand.values():
        assert set(answer(query, rows)["key"].to_pylist()) == wanted
        partial = query.lift(rows)
        queue = query.queue(partial.schema, 3)
        assert queue is not None
        queue.push(0, partial)
        assert queue.answer().equals(answer(query, rows))


@pytest.mark.parametrize(
    ("chosen", "complaint"),
    [
        ({"top": 3}, "top and rank_by go together, got top=3, rank_by=None"),
        ({"top": 0, "rank_by": "n"}, "top must be at least 1, got 0"),
        ({"top": 1, "rank_by": "m"}, "'m'"),
        ({"having": "m > 1"}, "'m'"),
    ],
)
def test_an_invalid_choice_is_an_error_when_the_query_is_described(chosen: dict[str, Any], complaint: str):
    with pytest.raises(ConfigError, match=complaint):
        sp.Aggregate("key", **chosen, n=sp.count()).validate(pa.schema({"key": pa.string()}))


def test_a_column_of_an_answer_has_any_name():
    names = [
        *inspect.signature(sp.Aggregate).parameters,
        *inspect.signature(sp.aggregate).parameters,
        "self",
        "a b",
        "`",
    ]
    query = sp.Aggregate("key", functions=dict.fromkeys(names, sp.count()), n=sp.count())
    (row,) = answer(query, pa.table({"key": ["a", "a"]})).to_pylist()
    assert row == {"key": "a", "n": 2} | dict.fromkeys(names, 2)


@pytest.mark.parametrize(
    ("functions", "complaint"),
    [
        (sp.count(), "functions= must be functions by name, such as {'top': sp.max('price')}, got "),
        ([("n", sp.count())], "functions= must be functions by name"),
        ({1: sp.count()}, "functions= must be functions by name"),
        ({"": sp.count()}, "functions= must be functions by name"),
        ({"n": sp.count()}, "'n' is a name in functions= and a keyword: rename one"),
        ({"m": "count()"}, "m= must be an aggregate function such as sp.sum('amount'), got 'count()'"),
    ],
)
def test_functions_that_are_none_are_refused(functions: Any, complaint: str):
    with pytest.raises(ConfigError) as refused:
        sp.Aggregate("key", functions=functions, n=sp.count())
    assert complaint in str(refused.value)


def test_two_columns_of_one_name_are_refused_where_they_are_written():
    with pytest.raises(ConfigError, match="'KEY' is a column of by and an aggregate"):
        sp.Aggregate("key", KEY=sp.count())
    with pytest.raises(ConfigError, match="'n' and 'N' are one name to Spark, which ignores case: rename one"):
        sp.Aggregate(n=sp.count(), N=sp.sum("f"))


@pytest.mark.parametrize(("function", "recorded"), [
    (sp.count(), "counted"), (sp.count_if("f > 1"), "counted"), (sp.sum("f"), "sum"), (sp.avg("f"), "mean"),
    (sp.variance("f"), "spread"), (sp.stddev("f"), "spread"), (sp.min("f"), "chosen"), (sp.max_by("f", "i"), "chosen"),
    (sp.first("f", order="i"), "chosen"), (sp.collect_list("f", order="i"), "inorder"), (sp.count_distinct("f"), "distinct"),
    (sp.mean("f"), "mean"), (sp.bool_or("flag"), "chosen"), (sp.collect_set("f"), "distinctvalues"),
    (sp.mode("f"), "mode"), (sp.median("f"), "percentile"), (sp.percentile_approx("f", 0.5), "percentile"),
    (sp.approx_quantile("f"), "approxquantile"), (sp.approx_count_distinct("f"), "approxdistinct"),
])  # fmt: skip
def test_checkpoints_record_a_function_under_a_name_that_stays(function: Any, recorded: str):
    assert function.describe()["function"] == recorded


def _first(rows: pa.Table) -> float:
    return float(rows["f"][0].as_py())


@dataclass(frozen=True)
class Own(DistinctPart):
    """An accumulator that another package defines."""


@pytest.mark.parametrize(
    ("functions", "other"),
    [
        (FUNCTIONS, False),
        ({"n": sp.approx_count_distinct("i"), "q": sp.approx_quantile("f", 0.5)}, False),
        ({"n": sp.count(), "own": sp.in_order(_first, "f", returns=pa.float64())}, True),
        ({"n": sp.count(), "own": sp.accumulate(Own("i"))}, True),
    ],
)
def test_code_of_others_is_known(functions: dict[str, Any], other: bool):
    assert sp.Aggregate("key", time="at", **functions).calls_other_code(SCHEMA) is other
