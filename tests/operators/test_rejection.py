from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import SCHEMA, multiset, table, tables, windows

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.reject_reasons import FUTURE, LATE, REASON
from skypane.operators.entry.rejected import Rejection


@st.composite
def rejections(draw: st.DrawFn) -> Rejection:
    gate = EntryRules(
        draw(windows(st.just(7))), "time", ("x", "y"), "label", first_open=draw(st.integers(-3, 9)), keep=True
    )
    return gate.split(draw(tables(clean=False))).rejection


def rows_of(rejection: Rejection) -> pa.Table:
    return pa.concat_tables([SCHEMA.append(pa.field(REASON, pa.string())).empty_table(), *rejection.rows])


def same(one: Rejection, other: Rejection) -> bool:
    return one.snapshot() == other.snapshot() and multiset(rows_of(one)) == multiset(rows_of(other))


@given(rejections(), rejections(), rejections())
def test_merging_is_associative_and_commutative_and_nothing_is_its_unit(a: Rejection, b: Rejection, c: Rejection):
    assert same(a.merge(b), b.merge(a))
    assert same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert same(a.merge(b, c), a.merge(b).merge(c))
    assert same(a.merge(), a)
    assert same(Rejection().merge(a), a)


@given(rejections())
def test_its_counts_are_those_of_its_rows(rejection: Rejection):
    reasons = rows_of(rejection)[REASON].to_pylist()
    assert rejection.reasons == {reason: reasons.count(reason) for reason in reasons}
    assert rejection.late_rows == sum(count.rows for count in rejection.late) == sum(rejection.by_source.values())
    assert rejection.quarantined == {reason: n for reason, n in rejection.reasons.items() if reason != LATE}


@given(rejections())
def test_it_goes_through_json_without_its_rows(rejection: Rejection):
    restored = Rejection.restored(json.loads(json.dumps(rejection.snapshot())))
    assert restored.snapshot() == rejection.snapshot()
    assert restored.rows == ()


def test_rows_may_be_rejected_as_a_whole():
    rejection = Rejection.of(table([1, 2]), FUTURE)
    assert rejection.reasons == rejection.quarantined == {FUTURE: 2}
    assert rejection.rows[0].column(REASON).to_pylist() == [FUTURE] * 2
    assert rejection.late == ()
