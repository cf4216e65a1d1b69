"""A condition that Spark evaluates, in a plan and in what a checkpoint records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import skypane as sp
from skypane.operators.aggregates.spark_having import SparkHaving, of_workers
from skypane.operators.amendments import AmendRule
from skypane.operators.changes.comparison import OpenWindows, QueryChange, compare
from skypane.operators.changes.window_phases import Phase
from skypane.plan import Plan
from skypane.runtime import local
from skypane.snapshots import through_json
from skypane.types import ConfigError
from skypane.windows import Windows

SCHEMA = pa.schema({"time": pa.timestamp("us"), "key": pa.string(), "x": pa.float64()})
WINDOWS = Windows(10, 5)
LIKE = SparkHaving("key LIKE 'a%'", ("key",))
MOST = SparkHaving("abs(most) > 1", ("most",))


def plan(having: SparkHaving | None, condition: str | None = None, **functions: Any) -> Plan:
    query = sp.Aggregate("key", having=condition, rows=sp.count(), **functions)
    return Plan(query, WINDOWS, "time", having=having)


def changed(before: Plan, after: Plan, *phases: Phase) -> QueryChange:
    """Return the change between two plans while windows hold rows."""
    opened = OpenWindows(WINDOWS, frozenset({3, 4}), next_window=1, phases=phases)
    old, new = (through_json(one.definition(SCHEMA)) for one in (before, after))
    return compare(old, new, after.query, SCHEMA, opened)


@pytest.mark.parametrize("having", [LIKE, SparkHaving("Column", ("rows",), object(), shown=True)])  # type: ignore[arg-type] # stands for a Column
def test_a_checkpoint_records_the_condition_as_a_part_of_its_query(having: SparkHaving):
    recorded = through_json(plan(having).definition(SCHEMA))["query"]
    assert recorded["having"] == having.text
    assert SparkHaving.recorded(recorded) == having
    assert of_workers(recorded) == through_json(plan(None).definition(SCHEMA))["query"]


def test_a_condition_of_workers_is_recorded_as_before():
    recorded = through_json(plan(None, "rows > 1").definition(SCHEMA))["query"]
    assert SparkHaving.recorded(recorded) is None
    assert of_workers(recorded) == recorded
    assert recorded["having"] == "rows > 1"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (plan(None), plan(LIKE)),
        (plan(LIKE), plan(None)),
        (plan(LIKE), plan(replace(LIKE, text="key LIKE 'b%'"))),
        (plan(None, "rows > 1"), plan(LIKE)),
        (plan(LIKE), plan(None, "rows > 1")),
    ],
)
def test_a_condition_may_change_from_the_next_window_on(before: Plan, after: Plan):
    change = changed(before, after)
    assert change.kept == (f"having was {_text(before)!r}, is {_text(after)!r}",)
    assert not change.begins
    assert not change.refused
    assert not change.phases
    assert not change.converts


def _text(of: Plan) -> str | None:
    assert isinstance(of.query, sp.Aggregate)
    return of.query.choice.having if of.having is None else of.having.text


def test_the_same_condition_makes_no_difference():
    assert not list(changed(plan(LIKE), plan(LIKE)).lines)


def test_a_function_is_added_unless_the_condition_needs_it_where_it_is_unknown():
    added: dict[str, Any] = {"most": sp.max("x")}
    change = changed(plan(LIKE), plan(LIKE, **added))
    assert not change.refused
    assert {phase.unknown for phase in change.phases} == {("most",)}
    for before, after in [
        (plan(None), plan(MOST, **added)),
        (plan(LIKE), plan(MOST, **added)),
        (plan(LIKE), plan(None, "most > 1", **added)),
    ]:
        change = changed(before, after)
        assert len(change.refused) == 1
        assert change.refused[0].startswith(
            "having, top or rank_by use 'most', null in the windows that hold rows read so"
        )
        assert change.refused[0].endswith(
            "add the function first, and change the filter when these windows are answered"
        )
    # as workers do: those windows are filtered as before
    assert not changed(plan(None, "rows > 1"), plan(None, "most > 1", **added)).refused


def test_a_function_that_is_still_unknown_in_some_windows_cannot_be_read_yet():
    added: dict[str, Any] = {"most": sp.max("x")}
    phases = changed(plan(LIKE), plan(LIKE, **added)).phases
    assert changed(plan(LIKE, **added), plan(MOST, **added), *phases).refused
    assert not changed(plan(LIKE, **added), plan(MOST, **added)).refused
    assert not changed(plan(LIKE, **added), plan(None, "rows > 1", **added), *phases).refused


@pytest.mark.parametrize(
    ("options", "read", "complaint"),
    [
        ({}, ("window_end", "rows"), None),
        ({"amend": AmendRule(5)}, ("window_end", "rows"), None),
        ({"early": 5}, ("key",), None),
        ({"answers": "stays"}, ("key", "rows"), None),
        ({"amend": AmendRule(5)}, ("version",), "reads version, and the versions of a window have other values in it"),
        ({"amend": AmendRule(5)}, ("empty", "rows"), "reads empty, and the versions"),
        ({"early": 5}, ("early", "version"), "reads early, version, and the versions"),
        ({"amend": AmendRule(5, changes=True)}, ("action",), "reads action, and the versions"),
        (
            {"answers": "stays"},
            ("window_start",),
            'reads window_start, and with answers="stays" a row stands for windows',
        ),
        ({"answers": "stays"}, ("window_count",), "reads window_count, and with answers"),
    ],
)
def test_a_condition_reads_what_is_the_same_in_all_forms_of_an_answer(
    options: dict[str, Any], read: tuple[str, ...], complaint: str | None
):
    made = replace(plan(SparkHaving("a condition", read)), **options)
    if complaint is None:
        made.validate(SCHEMA)
    else:
        with pytest.raises(ConfigError, match=f"^having='a condition' {complaint}"):
            made.validate(SCHEMA)


def test_what_runs_without_spark_refuses_the_plan():
    with pytest.raises(ConfigError, match=r"^having=\"key LIKE 'a%'\" is evaluated by Spark, and this runs without it"):
        next(local.run(plan(LIKE), [SCHEMA.empty_table()]))
