"""Each cause from metrics made by hand: its line names it and what to set, since its first batch; healthy batches have none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.checkout import ROOT
from tests.reporting.made import batch

from skypane.diagnosis.diagnose import all_causes, diagnose, stopped
from skypane.diagnosis.evidence import FAMILIES
from skypane.metrics import BatchMetrics, InputMetrics, QueryMetrics
from skypane.policy import Decision

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
T0 = 1_600_000_000 * SECOND
NOW = 1.7e9
"""When the first batch began, in seconds since the epoch."""
STEP = 20 * SECOND
BEGAN = 50
"""The batch with which something begins to be wrong."""
SOURCES = dict.fromkeys(("a", "b", "c", "d"), 25)

Change = Callable[[int], dict[str, Any]]


def healthy(at: int) -> dict[str, Any]:
    """Return what a batch has of a stream that is all right: 100 rows of four sources, and the wait of a policy."""
    newest = T0 + at * STEP
    return {
        "batch_id": at, "started_at": NOW + at, "rows": 100, "seen_rows": 100 * at, "newest": newest,
        "punctuation": newest - 30 * SECOND, "slack": 30 * SECOND, "drop_budget": 0.01, "max_slack": DAY,
        "rows_by_source": SOURCES, "seconds": {"total": 0.3, "plq": 0.2, "sink": 0.05, "commit": 0.05},
    }  # fmt: skip


def history(change: Change, *, batches: int = BEGAN + 25, first: int = 20) -> list[BatchMetrics]:
    """Return batches with the causes after each: from BEGAN on, they have what `change` returns for the number since then."""
    found: list[BatchMetrics] = []
    for at in range(first, batches):
        changed = healthy(at) | (change(at - BEGAN) if at >= BEGAN else {})
        found.append(batch(**changed))
        found[-1] = replace(found[-1], causes=diagnose(found))
    return found


def late(at: int, rows: int, *, by: int, source: str = "", median: int | None = None, **more: Any) -> dict[str, Any]:
    """Return that a batch has late rows, all of a source if it is named."""
    delays = {"least": by - SECOND, "median": by if median is None else median, "most": by + SECOND}
    named = {"late_by_source": {source: rows}} if source else {}
    return {"late_rows": rows, "dropped_rows": rows * (at + 1) + BEGAN, "delays": delays, **named} | more


def inputs(**states: tuple[str, int]) -> tuple[InputMetrics, ...]:
    """Return inputs by their state and their lag; each report is another one."""
    return tuple(InputMetrics(name, 0, 1.0, 1.0, lag, 0, state) for name, (state, lag) in states.items())


def growing(at: int) -> dict[str, Any]:
    return {"inputs": inputs(a=("behind", 1_000 + 200 * at), b=("read", 0))}


def waiting(at: int) -> dict[str, Any]:
    stuck = T0 + (BEGAN - 2) * STEP
    why = Decision("progress", stuck, "a, the last of 4 sources, is 5 min behind the newest time")
    return {"punctuation": stuck, "slack": (at + 2) * STEP, "decisions": (why,)}


def slow(step: str, total: float = 3.0, **more: Any) -> Change:
    seconds = {"total": total, "plq": 0.1, "wlq": 0.1, "sink": 0.1, "commit": 0.1}
    known = seconds | ({} if step == "rest" else {step: total - 0.4})
    return lambda _: {"seconds": known, "trigger": 1.0} | more


CASES: dict[str, tuple[Change, str, str]] = {
    "rows lost at the source": (
        lambda _: {"inputs": (InputMetrics("a", 0, 1.0, 1.0, 0, 0, "read", lost="from 0 to 500"),)},
        "1 deletion of unread rows of a", "retention of the source",
    ),
    "rejected rows": (
        lambda _: {"quarantined": {"null price": 7}}, "rejected rows (null price)", "text is not of that type",
    ),
    "times in the wrong unit": (
        lambda at: {"newest": (T0 + at * STEP) // 1_000, "punctuation": (T0 + at * STEP) // 1_000}, "rows in 1970", "sf.timestamp_millis",
    ),
    "drained too early": (
        lambda at: {"punctuation": T0 + 90 * STEP} | (late(at, 60, by=SECOND) if at else {}),
        "a drain has closed the windows", "without now",
    ),
    "late in the wrong unit": (
        lambda at: late(at, 20, by=50 * 365 * DAY, source="a"), "50 years before all others", "sf.timestamp_millis",
    ),
    "read again": (
        lambda at: late(at, 100, by=2 * HOUR - at * STEP, newest=T0 + BEGAN * STEP, punctuation=T0),
        "went back by 2 h", "to_utc_timestamp",
    ),
    "input behind": (
        lambda at: late(at, 30, by=HOUR + at * MINUTE)
        | {"inputs": (InputMetrics("a", 0, 1.0, 1.0, 9, 0, "behind", waiting=3_600.0),)},
        "the input a is read 1 h", "align=",
    ),
    "clock ahead": (
        lambda at: late(at, 75, by=HOUR, clocks={"b": -HOUR, "c": -HOUR, "d": -HOUR})
        | {"late_by_source": {"b": 25, "c": 25, "d": 25}},
        "the clock of a is about 1 h", 'clocks="align"',
    ),
    "clock behind": (
        lambda at: late(at, 25, by=HOUR, source="b", clocks={"b": -HOUR}), "the clock of b is about 1 h", 'clocks="align"',
    ),
    "uploads": (
        lambda at: late(at, 90, by=6 * HOUR, source="c") if at in {5, 15} else {"dropped_rows": 180},
        "c sends what it has kept all at once, up to 6 h later", "sp.Amend",
    ),
    "source behind": (
        lambda at: late(at, 20, by=(at + 3) * MINUTE, source="c"), "c comes up to", "sp.Readiness",
    ),
    "max_slack too small": (
        lambda at: late(at, 20, by=(at % 9 + 9) * MINUTE, max_slack=MINUTE, slack=MINUTE),
        "max_slack='1 minute' is the longest wait", "max_slack='18 minutes'",
    ),
    "out of order": (
        lambda at: late(at, 30, by=(at % 9 + 1) * MINUTE, unavoidable_rows=25),
        "in whole blocks, up to 9 min after newer ones, 25 later than any row before", "max_drop=",
    ),
    "windows amended": (
        lambda _: {"amend_budget": 0.05, "amended": {"windows": 2, "all_answered": 99, "all_amended": 20}},
        "20.2 % of all windows", "max_amended=0.3",
    ),
    "clock off": (lambda _: {"clocks": {"d": HOUR}}, "the clock of d is about 1 h", 'clocks="align"'),
    "time zone": (
        lambda at: {"newest": (round(NOW) + BEGAN + at + 7_200) * SECOND}, "2 h", "sf.to_utc_timestamp",
    ),
    "rows held": (
        lambda at: {"held_rows": 3 + at, "held_ahead": 366 * DAY, "clocks": {"d": 366 * DAY}},
        "beyond all others by 366 d, while the stream goes on: the clock of d is ahead", "max_ahead=",
    ),
    "disk nearly full": (lambda _: {"disk": (1 << 20, 1 << 40)}, "1 MiB left of 1,048,576", "checkpoint="),
    "punctuation waits": (waiting, "a, the last of 4 sources, is 5 min behind", "idle_after="),
    "input gone": (lambda _: {"inputs": inputs(a=("gone", 0), b=("read", 0))}, "a is not there any more", "list of inputs"),
    "source silent": (
        lambda _: {"rows_by_source": {"a": 30, "b": 30, "c": 40}}, "d sent rows in nearly every batch", "Readiness",
    ),
    "inputs fall behind": (growing, "most of them in a (100 %)", "readers="),
    "slow sink": (slow("sink"), "86.67 % of it in the sink", "a faster sink"),
    "slow checkpoint": (slow("commit"), "to commit to the checkpoint", "checkpoint="),
    "slow panes": (slow("plq"), "where the trigger leaves 1 s", "plq_workers="),
    "slow windows": (slow("wlq"), "to answer the windows", "a longer slide"),
    "slow source": (slow("rest"), "in Spark and its source", "trigger"),
    "skew": (slow("plq", busy=(2.4, 0.1, 0.1)), "one task has 92.31 % of the work", "splitting="),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_cause_is_named_with_what_to_set_since_its_first_batch(name: str):
    change, why, remedy = CASES[name]
    found = history(change, first=BEGAN if name == "times in the wrong unit" else 20)
    causes = [cause for cause in found[-1].causes if cause.name == name]
    assert len(causes) == 1, [cause.line for cause in found[-1].causes]
    (cause,) = causes
    assert why in cause.line, cause.line
    assert remedy in cause.line, cause.line
    assert BEGAN - 1 <= cause.batch <= BEGAN + 15
    assert cause.since == NOW + cause.batch
    assert f"since batch {cause.batch} (2023-11-14" in cause.line
    assert cause.number > 0
    assert [one.name for one in found[-1].causes] == [name], "one cause has one line"


def test_an_input_that_is_silent_while_others_are_read_is_named():
    def change(at: int) -> dict[str, Any]:
        return {
            "inputs": tuple(
                replace(one, offset=at) for one in inputs(a=("silent" if at > 15 else "read", 0), b=("read", 0))
            )
        }

    (cause,) = history(change, batches=BEGAN + 35)[-1].causes
    assert (cause.name, cause.about, cause.batch) == ("input silent", "a", BEGAN + 16)


def test_each_cause_has_a_case():
    assert FAMILIES.keys() - CASES.keys() == {"no rows", "input silent"}, "these have tests of their own"


@pytest.mark.pages
def test_the_page_has_each_cause_in_order():
    table = (ROOT / "docs" / "diagnosis.md").read_text(encoding="utf-8").partition("## The causes")[2]
    listed = [
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall("`([^`]+)`", line.split("|")[1])
    ]
    assert set(listed) == FAMILIES.keys()
    assert len(listed) == len(set(listed))


def test_a_stream_that_is_all_right_has_no_line():
    assert all(not one.causes for one in history(lambda _: {}))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda at: late(at, 1, by=MINUTE), id="a late row in a hundred, as the budget allows"),
        pytest.param(lambda at: {"rows": 0, "rows_by_source": {}} if at else {}, id="no rows any more"),
        pytest.param(lambda _: {"held_rows": 5, "held_ahead": 3 * DAY, "newest": T0}, id="a pause, after which rows are held"),
        pytest.param(lambda at: {"seconds": {"total": 9.0}, "trigger": 1.0} if at < 3 else {}, id="a few slow batches"),
        pytest.param(lambda at: {"inputs": inputs(a=("behind", 9_000 - 100 * at))}, id="a backlog that is read"),
        pytest.param(lambda at: {"rows_by_source": {f"trip {at}": 100}}, id="sources that come and go"),
        pytest.param(lambda _: {"punctuation": T0 + 90 * STEP}, id="a drain after which nothing is late"),
    ],
)  # fmt: skip
def test_a_batch_without_a_loss_has_no_line(change: Change):
    assert [cause.line for one in history(change) for cause in one.causes] == []


def test_late_rows_of_the_first_batches_are_those_from_which_a_policy_learns():
    """As many again once the stream is older than their delay are a loss."""
    learning = [
        late(at, 30, by=(3 + at) * MINUTE) | {"dropped_rows": 30 * (at + 1), "unavoidable_rows": 30} for at in range(8)
    ]
    found: list[BatchMetrics] = []
    for at in range(40):
        changed = learning[at] if at < 8 else late(at - 20, 30, by=5 * MINUTE) if at >= 30 else {"dropped_rows": 240}
        found.append(batch(**healthy(at) | changed))
        found[-1] = replace(found[-1], causes=diagnose(found))
    assert all(not one.causes for one in found[:30])
    (cause,) = found[-1].causes
    assert cause.batch == 31


def test_a_cause_keeps_its_beginning_and_its_words_and_ends_once():
    found = history(lambda at: {"quarantined": {"null price": 4}} if at < 5 else {}, batches=BEGAN + 40)
    shown = [one.causes for one in found[BEGAN - 20 :]]
    assert [len(causes) for causes in shown] == [1] * 24 + [0] * 16
    assert {causes[0].batch for causes in shown if causes} == {BEGAN}
    assert [causes[0].number for causes in shown[:6]] == [4, 8, 12, 16, 20, 20]
    assert len({causes[0].why for causes in shown if causes}) == 1
    (cause,) = all_causes(found)
    assert cause.number == 20


def test_causes_are_in_order_of_weight_and_those_of_one_query_are_named():
    def change(at: int) -> dict[str, Any]:
        plain = batch(**healthy(at + BEGAN))
        one = QueryMetrics.of(replace(plain, quarantined={"null price": 3}))
        return slow("sink")(at) | {"queries": {"best": one, "load": QueryMetrics.of(plain)}}

    causes = history(change)[-1].causes
    assert [(cause.name, cause.query) for cause in causes] == [("rejected rows", "best"), ("slow sink", "")]
    assert causes[0].line.startswith("best: 75 rejected rows (null price) since batch 50 ")


def test_a_stream_without_a_batch_for_long_is_silent():
    usual = [batch(**healthy(at)) for at in range(10)]
    assert stopped(usual, NOW + 60) is None
    assert stopped(usual[:3], 2e9) is None, "too few batches to know what is usual"
    cause = stopped(usual, NOW + 9 + 300)
    assert cause is not None
    assert cause.line.startswith("300 seconds without a batch since batch 9 ")
    rare = [replace(one, started_at=NOW + 600 * at) for at, one in enumerate(usual)]
    assert stopped(rare, NOW + 600 * 9 + 3_600) is None, "a batch every ten minutes is usual"


def test_metrics_of_earlier_versions_have_no_causes_and_none_is_lost_by_json():
    found: Sequence[BatchMetrics] = history(CASES["out of order"][0])
    assert BatchMetrics.from_json(found[-1].to_json()) == found[-1]
    value = found[-1].to_json()
    for name in ("causes", "rows_by_source", "delays", "clocks", "held_ahead", "max_slack", "trigger", "disk"):
        del value[name]
    earlier = BatchMetrics.from_json(value)
    assert earlier.causes == ()
    diagnose([earlier] * 9)
