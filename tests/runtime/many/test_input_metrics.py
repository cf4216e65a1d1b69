"""What is to be seen of inputs: rates of what comes, the lag of reading; with real files, without Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.runtime.many.read_batches import NOTHING, grow, planner

from skypane.control.forecast import RateAhead
from skypane.metrics import InputMetrics, InputReport
from skypane.runtime.spark.sources.many.discovery import listed
from skypane.runtime.spark.sources.many.input_metrics import from_json, to_json
from skypane.runtime.spark.sources.many.planning import Planner


def seen(plan: Planner, now: float) -> dict[str, InputMetrics]:
    return {Path(one.input).stem: one for one in plan.seen(now)}


def test_a_table_shows_reader_growth_and_lag_of_each_input(tmp_path):
    grow(tmp_path, hot=1_000, a=5, still=2)
    plan = planner(f"{tmp_path}/*.csv")
    place = plan.latest(NOTHING, 107)
    first = seen(plan, 100.0)
    assert {name: (one.lag, one.state) for name, one in first.items()} == {
        "hot": (900, "behind"), "a": (0, "read"), "still": (0, "read")}  # fmt: skip
    assert all(one.reader is None and one.rate is None and one.forecast is None for one in first.values())
    plan.assigned(NOTHING, place)
    for at in range(1, 9):
        grow(tmp_path, hot=20, a=at)
        place = plan.latest(place, None)
        table = seen(plan, 100.0 + 2 * at)
    assert table["hot"].rate == table["hot"].forecast == 10
    assert table["a"].rate == 4
    assert table["a"].forecast == pytest.approx(4.5, abs=0.4)  # it grows by a half each time
    assert table["still"].rate == table["still"].forecast == 0
    assert {one.reader for one in table.values()} <= {0, 1, 2}
    assert table["hot"].offset == 8 * 1_160
    assert [table[name].state for name in ("hot", "a", "still")] == ["read", "read", "silent"]
    rows = plan.seen(120.0)
    assert from_json(to_json(rows)) == InputReport(tuple(rows))
    assert from_json({"at": {}}) is None


def test_meta_data_let_a_rate_be_expected_before_it_comes(tmp_path):
    """The planner's own clock is another one than that of the statement, which may be set while it runs."""
    opens = datetime(2026, 3, 2, 9, 30, tzinfo=UTC).timestamp()
    meta = {"changes": ["x10 at 09:30 UTC", "x1 at 16:00 UTC"]}
    grow(tmp_path, hot=10, calm=10)
    entries = [{"path": f"{tmp_path}/hot.csv", "meta": meta}, f"{tmp_path}/calm.csv"]
    plan = Planner(lambda: listed(entries), 2, lead="30 seconds")
    place = NOTHING
    for at in range(1, 9):
        grow(tmp_path, hot=20, calm=20)
        place = plan.latest(place, 1_000)
        table = {Path(one.input).stem: one for one in plan.seen(100.0 + 2 * at, opens - 46 + 2 * at)}
        if at == 7:
            assert table["hot"].expected == table["hot"].forecast == 10
    assert (table["hot"].expected, table["calm"].expected) == (100, None)
    (decision,) = plan.decisions
    assert (decision.what, decision.value) == ("rate", 110)
    assert decision.because.endswith("hot.csv 100 (x10 at 09:30 UTC, in 30 s)")
    report = from_json(json.loads(json.dumps(to_json(list(table.values()), plan.decisions))))
    assert report is not None
    assert report.ahead == RateAhead(110, decision.because)
    assert table["hot"] in report.inputs


def test_an_input_that_is_gone_keeps_its_place_in_the_table_and_one_that_joins_has_no_rate_yet(tmp_path):
    grow(tmp_path, a=5, b=5)
    plan = planner(f"{tmp_path}/*.csv")
    place = plan.latest(NOTHING, None)
    plan.seen(0.0)
    (tmp_path / "a.csv").unlink()
    grow(tmp_path, new=1)
    plan.latest(place, None)
    table = seen(plan, 2.0)
    assert (table["a"].state, table["a"].offset, table["a"].lag) == ("gone", 40, 0)
    assert (table["new"].state, table["new"].rate) == ("read", None)


def test_looks_that_follow_each_other_at_once_are_one_period(tmp_path):
    grow(tmp_path, a=10)
    plan = planner(f"{tmp_path}/*.csv")
    place = plan.latest(NOTHING, 10)
    plan.seen(0.0)
    for at in range(1, 11):
        grow(tmp_path, a=1)
        place = plan.latest(place, 10)
        table = seen(plan, at / 10)
    assert table["a"].rate == 10
