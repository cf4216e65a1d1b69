from __future__ import annotations

import json

import pytest

from skypane.operators.entry.pane_counts import PaneCount
from skypane.operators.entry.rejected import Rejection
from skypane.operators.open_panes import OpenPanes, WindowTask
from skypane.operators.row_account import RowAccount, RowTotals
from skypane.progress.far_future import HeldPane, HeldPanes
from skypane.types import CheckpointError, SkypaneError
from skypane.windows import Windows

WINDOWS = Windows(20, 10)
NOTHING = Rejection()


def counts(**rows: int) -> list[PaneCount]:
    return [PaneCount(int(pane[1:]), number, 0, 0) for pane, number in rows.items()]


def panes(*numbers: int) -> OpenPanes[str]:
    return OpenPanes[str].empty(WINDOWS).add((number, "partial") for number in numbers)


def held(*parts: tuple[int, int]) -> HeldPanes:
    return HeldPanes(tuple(HeldPane(pane * 10, pane * 10 + 10, rows, 0, 0) for pane, rows in parts))


def test_a_row_is_answered_with_the_first_window_of_its_pane_and_not_again_with_the_next():
    first = RowAccount().after(6, counts(p0=3, p1=2, p9=1), NOTHING, (), [WindowTask(-1, ((0, ("a",)),))])
    assert first.totals(held((9, 1)), panes(0, 1, 9)) == RowTotals(6, 3, 0, 0, 1, 2)
    second = first.after(0, (), NOTHING, (), [WindowTask(0, ((0, ("a",)), (1, ("b",))))])
    assert second.totals(held((9, 1)), panes(1, 9)) == RowTotals(6, 5, 0, 0, 1, 0)


def test_rejected_rows_are_late_or_quarantined_and_discarded_ones_no_longer_wait():
    account = RowAccount().after(9, counts(p0=3, p9=1), Rejection({"late": 2, "null x": 3}), (), [])
    account = account.after(2, counts(p9=2), Rejection({"future": 1}), {9}, [])
    totals = account.totals(held((9, 2)), panes(0, 9))
    assert totals == RowTotals(read=11, answered=0, late=2, quarantined=4, held=2, open=3)
    totals.check()


def test_a_pane_that_is_gone_and_not_answered_is_missed():
    account = RowAccount().after(6, counts(p0=3, p1=3), NOTHING, (), [])
    with pytest.raises(SkypaneError, match=r"3 of 6 rows read .* lost: 0 answered .* \+ 3 open = 3"):
        account.totals(HeldPanes(), panes(1)).check()


def test_a_pane_that_is_held_and_gone_is_missed():
    account = RowAccount().after(6, counts(p0=3, p9=3), NOTHING, (), [])
    with pytest.raises(SkypaneError, match=r"3 of 6 rows read .* lost"):
        account.totals(held((9, 3)), panes(0)).check()


def test_a_row_in_two_places_is_seen():
    account = RowAccount().after(3, counts(p0=3), Rejection({"late": 1}), (), [])
    with pytest.raises(SkypaneError, match=r"1 of 3 rows read .* counted twice"):
        account.totals(HeldPanes(), panes(0)).check()


def test_an_account_that_begins_late_counts_held_rows():
    account = RowAccount.begun(WINDOWS, held((7, 2), (9, 3)))
    assert account.totals(held((7, 2), (9, 3)), panes(0, 7, 9)) == RowTotals(5, 0, 0, 0, 5, 0)
    account.totals(held((7, 2), (9, 3)), panes(0, 7, 9)).check()


def test_a_snapshot_goes_through_json_and_what_is_none_is_refused():
    account = RowAccount().after(4, counts(p0=3, p1=1), NOTHING, (), [])
    assert RowAccount.restored(json.loads(json.dumps(account.snapshot()))) == account
    for wrong in ({}, {"waiting": 3}, account.snapshot() | {"lost": 1}):
        with pytest.raises(CheckpointError, match="RowAccount in the checkpoint"):
            RowAccount.restored(wrong)
