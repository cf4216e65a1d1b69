from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.rows import SCHEMA, SKYLINE, Bag, Counts

from skypane.operators.skyline import Skyline
from skypane.plan import Plan
from skypane.preference import high, low
from skypane.progress import KSlack, Watermark
from skypane.types import ConfigError
from skypane.windows import Windows

PLAN = Plan(SKYLINE, Windows(20, 10, 3), "time", KSlack("1 hour"), source="label")


def test_the_answers_are_the_rows_with_their_window():
    stamps = [(name, pa.timestamp("us", "UTC")) for name in ("window_start", "window_end")]
    assert PLAN.validate(SCHEMA) == pa.schema([*stamps, *SCHEMA])
    assert replace(PLAN, query=Counts("label")).validate(SCHEMA).names == ["window_start", "window_end", "label", "n"]


def test_stamps_have_the_time_zone_of_the_time_column():
    schema = SCHEMA.set(0, pa.field("time", pa.timestamp("ms")))
    assert PLAN.validate(schema).field("window_start").type == pa.timestamp("us")


@pytest.mark.parametrize(("plan", "message"), [
    (replace(PLAN, time="when"), "unknown column 'when'"),
    (replace(PLAN, time="x"), "time column 'x' is of type double"),
    (replace(PLAN, source="carrier"), "unknown column 'carrier'"),
    (replace(PLAN, query=Skyline(low("z"))), "unknown column 'z'"),
    (replace(PLAN, query=Skyline(low("x"), ("z",))), "'z'"),
])  # fmt: skip
def test_a_plan_that_does_not_fit_the_rows_is_refused(plan: Plan, message: str):
    with pytest.raises(ConfigError, match=message):
        plan.validate(SCHEMA)


def test_a_column_that_an_answer_cannot_have_twice_is_refused():
    with pytest.raises(ConfigError, match="rename window_end"):
        PLAN.validate(SCHEMA.append(pa.field("window_end", pa.int64())))


def test_a_description_is_json_and_survives_it():
    described = PLAN.describe()
    assert json.loads(json.dumps(described)) == described
    assert replace(PLAN).describe() == described


@pytest.mark.parametrize("other", [
    replace(PLAN, query=Bag()),
    replace(PLAN, query=Skyline(low("x") * low("y"))),
    replace(PLAN, query=Skyline(low("x") * high("y"), ("label",))),
    replace(PLAN, windows=Windows(30, 10, 3)),
    replace(PLAN, windows=Windows(20, 5, 3)),
    replace(PLAN, windows=Windows(20, 10)),
    replace(PLAN, time="at"),
    replace(PLAN, source=None),
    replace(PLAN, progress=KSlack("2 hours")),
    replace(PLAN, progress=Watermark("1 hour")),
])  # fmt: skip
def test_plans_that_differ_are_described_differently(other: Plan):
    assert other.describe() != PLAN.describe()


def test_a_plan_travels_to_workers():
    PLAN.validate(SCHEMA)  # whatever it caches by now must travel too
    sent = pickle.loads(pickle.dumps(PLAN))  # noqa: S301 - our own bytes
    assert sent == PLAN
    assert sent.gate == PLAN.gate
