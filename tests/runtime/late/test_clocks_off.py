"""Clocks that are off: their rows are corrected or quarantined, in one process and on Spark, over restarts and replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.differential.definition.clocks import Clocks
from tests.parameters import slow_but
from tests.rows import Bag, multiset
from tests.runtime.streams import AnySession, finish, parquet_rows, stream_job, write_batches

import skypane as sp
from skypane.operators.advance import Reading, advance
from skypane.operators.entry.row_runs import order_of
from skypane.operators.fronts import ContinuousSkyline
from skypane.plan import ContinuousPlan, Plan
from skypane.progress.slack_policy import SlackPolicy
from skypane.runtime import local
from skypane.types import ConfigError, micros
from skypane.windows import Windows

SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000
UTC = pa.timestamp("us", "UTC")
NAMES = np.array(["north", "east", "south", "west", "mill", "lake", "hill", "farm", "port", "wood"])
WINDOWS = Windows(10 * MINUTE, 5 * MINUTE)
ROWS = 40
ACTIONS = ["align", "quarantine"]


def stream(
    seed: int, off: dict[int, int], *, minutes: int = 40, rows: int = ROWS, kind: pa.DataType = UTC
) -> list[pa.Table]:
    """Return a batch for each minute; the clocks of the sources `off` are ahead by so much (microseconds)."""
    rng = np.random.default_rng(seed)
    return [_batch(rng, minute, rows, off, kind) for minute in range(minutes)]


def _batch(rng: np.random.Generator, minute: int, rows: int, off: dict[int, int], kind: pa.DataType) -> pa.Table:
    source = rng.integers(0, len(NAMES), rows)
    times = minute * MINUTE + rng.integers(0, MINUTE, rows) - rng.exponential(10 * SECOND, rows).astype(np.int64)
    shown = times + np.array([off.get(number, 0) for number in range(len(NAMES))])[source]
    names: list[str | None] = NAMES[source].tolist()
    if 4 in off:  # the source without a name has a clock, too
        names = [None if name == "mill" else name for name in names]
    return pa.table(
        {
            "id": pa.array(minute * rows + np.arange(rows)),
            "ts": pa.array(shown, pa.timestamp("us", getattr(kind, "tz", None))).cast(kind, safe=False),
            "source": pa.array(names, pa.string()),
            "x": pa.array(rng.integers(0, 9, rows).astype(np.float64)),
        }
    )


def times_of(rows: pa.Table) -> list[int]:
    in_micros = rows.column("ts").cast(pa.timestamp("us", rows.schema.field("ts").type.tz))
    column: list[int] = in_micros.cast("int64").to_pylist()
    return column


def accepting(policy: SlackPolicy[Any]) -> SlackPolicy[Any]:
    """Return a policy that leaves clocks as they are, but whose newest time, as where they are judged, follows the stream."""
    accepts = replace(policy, clocks="accept")
    object.__setattr__(accepts, "_follows_frontier", True)
    return accepts


def corrected(plan: Plan, batches: list[pa.Table]) -> list[tuple[pa.Table, pa.Table]]:
    """Return each batch as the definition has it enter, and the rows that it keeps out."""
    given = cast("SlackPolicy[Any]", plan.progress)
    policy = accepting(given)
    judged, state = replace(plan, progress=policy), policy.init()
    clocks = Clocks(micros(given.max_clock_offset))
    found = []
    for rows in batches:
        offsets, names, times = clocks.offsets(), list(map(str, rows.column("source").to_pylist())), times_of(rows)
        by = [offsets.get(name, 0) for name in names]
        if given.clocks == "align":
            out = rows.slice(0, 0)
            right = pa.array([time - one for time, one in zip(times, by, strict=True)], pa.int64())
            kind = rows.schema.field("ts").type
            usable = rows.set_column(1, "ts", right.cast(pa.timestamp("us", kind.tz)).cast(kind, safe=False))
        else:
            usable = rows.filter(pa.array([one == 0 for one in by]))
            out = rows.filter(pa.array([one != 0 for one in by]))
        found.append((usable, out))
        entry = judged.rules_after(state).split(usable)
        reading = Reading(order=partial(order_of, entry.panes, entry.times))
        state = advance(policy, judged.windows, state, entry.counts, entry.sources, reading=reading).state
        shown: dict[str, int] = {}
        for name, time in zip(names, times, strict=True):
            shown[name] = max(time, shown.get(name, time))
        assert state.newest is not None
        clocks.take(shown, state.newest, Counter(names))
    return found


def answered(outcomes: list[local.StepOutcome]) -> list[list[tuple[Any, ...]]]:
    return [[(answer.window, multiset(answer.rows)) for answer in outcome.answers] for outcome in outcomes]


@given(
    st.integers(0, 10**9),
    st.dictionaries(
        st.integers(0, 4),
        st.sampled_from([HOUR, -HOUR, 9 * MINUTE, -3 * MINUTE, 30 * SECOND, 9_000 * HOUR]),
        max_size=2,
    ),
    st.sampled_from(ACTIONS),
    st.sampled_from([sp.KSlack(), sp.AqKSlack(0.05), sp.Watermark("2 minutes"), sp.Readiness(5)]),
    st.sampled_from([UTC, pa.timestamp("us"), pa.timestamp("ms", "UTC"), pa.timestamp("ns"), pa.timestamp("s")]),
)
def test_is_the_definition(seed: int, off: dict[int, int], clocks: Any, policy: Any, kind: pa.DataType):
    """What enters is what would have entered if the rows had come with other times, or not at all."""
    plan = Plan(Bag(("x",)), WINDOWS, "ts", replace(policy, clocks=clocks), "source")
    batches = stream(seed, off, kind=kind)
    entered = corrected(plan, batches)
    found = list(local.run(plan, [*batches, local.Drain()]))
    accepted = replace(plan, progress=accepting(policy))
    wanted = list(local.run(accepted, [*(rows for rows, _ in entered), local.Drain()]))
    assert answered(found) == answered(wanted)
    out = [Counter(rows.column("id").to_pylist()) for _, rows in entered]
    for outcome, like, kept_out in zip(found[:-1], wanted[:-1], out, strict=True):
        assert ids(outcome.rejection) == ids(like.rejection) + kept_out
    totals, like_totals = found[-1].totals, wanted[-1].totals
    assert totals.quarantined == like_totals.quarantined + sum(map(len, out))
    assert (totals.late, totals.answered) == (like_totals.late, like_totals.answered)


def ids(rejection: Any) -> Counter[int]:
    return Counter(number for table in rejection.rows for number in table.column("id").to_pylist())


def test_a_clock_an_hour_ahead_is_corrected():
    """From the thirteenth batch on, each row of the source is answered within a few seconds of its minute."""
    plan = Plan(Bag(()), Windows(MINUTE, MINUTE), "ts", sp.KSlack(clocks="align"), "source")
    batches = stream(1, {2: HOUR})
    answers = {answer.window: answer.rows for answer in local.answers(plan, [*batches, local.Drain()])}
    hour, right = 60, 0
    for window, rows in answers.items():
        if 14 <= window < 39:
            sent = Counter(number // ROWS for number in rows.column("id").to_pylist())
            assert set(sent) <= {window - 1, window, window + 1, window + 2}
            right += rows.column("source").to_pylist().count("south")
        assert window < 13 + hour, "no row shows the hour ahead after the thirteenth batch"
    assert right > 50


@pytest.mark.parametrize("clocks", ACTIONS)
def test_rows_without_a_time_stay_without_one(clocks: Any):
    *batches, last = stream(1, {2: HOUR}, minutes=14)
    batches.append(last.set_column(1, "ts", pa.array([None] * last.num_rows, UTC)))
    plan = Plan(Bag(()), WINDOWS, "ts", sp.KSlack(clocks=clocks), "source")
    assert list(local.run(plan, batches))[-1].rejection.reasons == {"null ts": last.num_rows}


@pytest.mark.parametrize("ticks", [-(2**63), 2**63 - 1, 2**63 - 2])
def test_a_time_at_the_bound_of_its_type_does_not_overflow(ticks: int):
    kind = pa.timestamp("ns")
    for off in (HOUR, -HOUR):
        batches = stream(1, {2: off}, minutes=14, kind=kind)
        last = batches[-1].set_column(1, "ts", pa.array([ticks] * ROWS, pa.int64()).cast(kind))
        plan = Plan(Bag(()), WINDOWS, "ts", sp.KSlack(clocks="align", max_ahead=None), "source")
        outcome = list(local.run(plan, [*batches[:-1], last]))[-1]
        outcome.totals.check()


def test_a_policy_that_judges_clocks_needs_the_sources():
    plan = Plan(Bag(()), WINDOWS, "ts", sp.AqKSlack(0.01, clocks="align"))
    with pytest.raises(
        ConfigError, match=r"AqKSlack needs the sources, to judge their clocks: name the column .* source="
    ):
        plan.validate(stream(1, {})[0].schema)


def job(session: AnySession, folder: Path, plan: Plan, schema: pa.Schema, **options: Any) -> sp.Job:
    own: dict[str, Any] = {"window": plan.windows, "progress": plan.progress, "source": plan.source}
    return stream_job(session, folder, plan.query, schema, **own | options)


def bag(tables: Iterable[pa.Table], *columns: str) -> Counter[str]:
    return Counter(str(row) for table in tables for row in table.select(columns).to_pylist())


@pytest.mark.parametrize("clocks", slow_but([*ACTIONS][:1], ACTIONS))
def test_spark_agrees_over_restarts_and_a_batch_that_comes_again(clocks: Any, spark: SparkSession, tmp_path: Path):
    policy = sp.KSlack(max_slack="1 minute", clocks=clocks, patience=30)
    batches = stream(5, {2: HOUR, 3: -20 * MINUTE}, minutes=18)
    # A row of a clock that is corrected, and yet a year ahead: it is held, and then discarded.
    last = batches[14]
    year = pa.array([365 * 24 * HOUR, *([0] * (ROWS - 1))], pa.int64())
    far = pc.add(last.column("ts").cast("int64"), year).cast(UTC)
    names = pa.array(["south", *last.column("source").to_pylist()[1:]])
    batches[14] = last.set_column(1, "ts", far).set_column(2, "source", names)
    plan = Plan(sp.Skyline(sp.low("x") * sp.high("id")), WINDOWS, "ts", policy, "source")
    metrics = []
    for first, end in ((0, 13), (13, 15), (15, 18)):
        write_batches(tmp_path / "in", batches[first:end], first=first)
        metrics += finish(job(spark, tmp_path, plan, batches[0].schema, late=tmp_path / "late"))
        for name in (str(end - 1), f".{end - 1}.crc"):
            (tmp_path / "checkpoint" / "commits" / name).unlink()  # Spark brings the last batch again
    outcomes = list(local.run(plan, batches))
    wanted = (answer.rows for outcome in outcomes for answer in outcome.answers)
    columns = ["window_start", "id", "ts"]
    assert bag([parquet_rows(tmp_path / "out")], *columns) == bag(wanted, *columns)
    rejected = (table for outcome in outcomes for table in outcome.rejection.rows)
    late, columns = parquet_rows(tmp_path / "late"), ["id", "ts", "reason"]
    assert bag([late], *columns) == bag(rejected, *columns)
    reasons = set(late.column("reason").to_pylist())
    assert reasons >= ({"late", "future"} if clocks == "align" else {"clock ahead", "clock behind"})
    assert [batch.totals for batch in metrics] == [outcome.totals.to_json() for outcome in outcomes]
    done = "corrected" if clocks == "align" else "quarantined"
    decision = metrics[-1].decision("progress")
    assert decision is not None
    assert f"the clock of south is about 1 h ahead, its rows are {done}, and those of 1 more" in decision.because


class FailingSink:
    """A sink that fails once in a batch, and keeps the ids of the rows that it receives by batch."""

    def __init__(self, fails_in: int) -> None:
        self._fails_in: int | None = fails_in
        self.received: dict[int, list[tuple[Any, ...]]] = {}

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        if batch_id == self._fails_in:
            self._fails_in = None
            raise OSError("the disk is full")
        self.received[batch_id] = [tuple(row) for row in rows.select("id", sf.unix_micros("ts")).collect()]


@pytest.mark.slow
def test_a_batch_that_is_computed_again_has_the_same_offsets(spark: SparkSession, tmp_path: Path):
    """The batch after the one in which the offset is learned fails, and is computed again by the next start."""
    batches = stream(7, {2: HOUR}, minutes=16)
    write_batches(tmp_path / "in", batches)
    sink = FailingSink(fails_in=13)
    plan = Plan(Bag(("x",)), WINDOWS, "ts", sp.KSlack(clocks="align"), "source")
    with pytest.raises(sp.SkypaneError, match="the disk is full"):
        finish(job(spark, tmp_path, plan, batches[0].schema, output=sink))
    finish(job(spark, tmp_path, plan, batches[0].schema, output=sink))
    wanted = {
        number: Counter(
            pair
            for answer in outcome.answers
            for pair in zip(answer.rows["id"].to_pylist(), times_of(answer.rows), strict=True)
        )
        for number, outcome in enumerate(local.run(plan, batches))
    }
    assert 13 in sink.received
    assert {number: Counter(rows) for number, rows in sink.received.items() if rows} == {
        number: rows for number, rows in wanted.items() if rows
    }


def test_a_continuous_skyline_sees_corrected_times():
    query = ContinuousSkyline(sp.low("x") * sp.high("id"), "ts", 10 * MINUTE)
    batches = stream(4, {2: HOUR})
    plan = ContinuousPlan(query, Windows(MINUTE, MINUTE), "ts", sp.KSlack(clocks="align"), "source")
    entered = [rows for rows, _ in corrected(plan, batches)]
    accepted = replace(plan, progress=accepting(cast("SlackPolicy[Any]", plan.progress)))
    found, wanted = (
        [outcome.rows for outcome in local.run_continuous(one, events) if outcome.rows is not None]
        for one, events in ((plan, batches), (accepted, entered))
    )
    assert pa.concat_tables(found).equals(pa.concat_tables(wanted))
