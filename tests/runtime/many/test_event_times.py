"""Inputs that are read in step by event time: planned and read as a driver and its tasks do it, without Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.many.read_batches import NOTHING, batches, first_batches, parts_of, read_in_step

from skypane.control.admission.alignment import BATCHES
from skypane.progress.kslack import KSlack
from skypane.progress.pane_arrivals import PaneArrivals
from skypane.runtime.growing_files import GrowingFile
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.spark.sources.many.discovery import listed
from skypane.runtime.spark.sources.many.event_times import EventTimes, time_column
from skypane.runtime.spark.sources.many.input_kind import InputSpec
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.types import ConfigError
from skypane.windows import Windows

COLUMNS = pa.schema([("x", pa.int64()), ("ts", pa.timestamp("us"))])
SECOND = 1_000_000


def lines(times: Sequence[int], form: str) -> bytes:
    texts = np.asarray(times, "datetime64[us]").astype(str)
    row = '{{"x": {}, "ts": "{}"}}\n' if form == "json" else "{},{}\n"
    return "".join(row.format(at, text) for at, text in enumerate(texts)).encode()


def csv(folder: Path, name: str, times: Sequence[int], form: str = "csv", header: bytes = b"") -> dict[str, object]:
    path = folder / f"{name}.{form}"
    path.write_bytes(header + lines(times, form))
    return {"path": str(path), "name": name} | ({"header": True} if header else {})


def parquet(folder: Path, name: str, times: Sequence[int]) -> dict[str, object]:
    table = pa.table({"x": range(len(times)), "ts": pa.array(times, pa.timestamp("us"))}, schema=COLUMNS)
    pq.write_table(table, folder / f"{name}.parquet", row_group_size=500)
    return {"path": str(folder / f"{name}.parquet"), "name": name}


def segments(folder: Path, name: str, times: Sequence[int]) -> dict[str, object]:
    with SegmentLog(folder / name, 4096) as log:
        text = lines(times, "json").splitlines(keepends=True)
        for at in range(0, len(text), 100):
            log.append(b"".join(text[at : at + 100]))
    return {"segments": str(folder / name), "name": name}


def planner(listing: Sequence[InputSpec], *, align: bool = True) -> Planner:
    return Planner(lambda: listing, 2, times=EventTimes(COLUMNS, "ts") if align else None)


def rows(plan: Planner, start: Offsets, end: Offsets) -> dict[str, list[int]]:
    """Return the event times of a batch's rows by input; malformed rows are left out."""
    found: dict[str, list[int]] = {}
    for part, table in parts_of(plan, start, end, COLUMNS):
        if isinstance(table, pa.Table):
            found.setdefault(part.input.name, []).extend(table["ts"].cast(pa.int64()).to_pylist())
    return found


def times_of(plan: Planner, start: Offsets, end: Offsets) -> list[int]:
    return [time for of in rows(plan, start, end).values() for time in of]


def lateness(plan: Planner, budget: int) -> int:
    _, latest = read_in_step(plan, budget, partial(times_of, plan))
    return latest


def dropped(plan: Planner, budget: int) -> float:
    """Return the share of rows that K-slack drops."""
    windows, policy = Windows.of("1 minute", "10 seconds"), KSlack()
    state = policy.init()
    for start, end in batches(plan, budget):
        state, _ = policy.decide(state, PaneArrivals.at_once(times_of(plan, start, end), windows))
    return state.dropped / state.seen


@pytest.mark.parametrize(
    "written", [csv, partial(csv, header=b"x,ts\n"), partial(csv, form="json"), parquet, segments],
    ids=["csv", "headed", "json", "parquet", "segments"],
)  # fmt: skip
def test_inputs_of_unequal_size_stay_together_in_event_time(tmp_path, written: Callable[..., dict[str, object]]):
    """1:2:10 rows over the same 50 minutes, 300 rows a batch, about 70 seconds; max-min shares drift apart by half an hour."""
    entries = [written(tmp_path, name, np.linspace(0, 3000 * SECOND, count, dtype=np.int64).tolist())
               for name, count in (("a", 1000), ("b", 2000), ("c", 10_000))]  # fmt: skip
    listing = listed(entries)
    assert lateness(planner(listing), 300) < 10 * SECOND
    assert lateness(planner(listing, align=False), 300) > 1500 * SECOND


def test_rows_of_a_stream_with_bursts_are_not_made_late(tmp_path):
    """Bursts of a minute in one of two inputs, none for four minutes; K-slack drops a third of the rows by max-min shares."""
    rng = np.random.default_rng(3)
    bursts = np.sort(np.concatenate([rng.integers(at, at + 60, 900) for at in range(0, 3000, 300)])) * SECOND
    even = range(0, 3000 * SECOND, SECOND)
    listing = listed([csv(tmp_path, "bursts", bursts.tolist()), csv(tmp_path, "even", even)])
    assert dropped(planner(listing), 500) < 0.005
    assert dropped(planner(listing, align=False), 500) > 0.1


def test_another_driver_plans_the_same_batch(tmp_path):
    listing = listed([parquet(tmp_path, "a", range(0, 900, 3)), parquet(tmp_path, "b", range(900))])
    for place, end in first_batches(planner(listing), 100, 5):
        assert planner(listing).latest(place, 100) == end


def test_an_input_that_joins_with_older_rows_is_read_until_it_is_level(tmp_path):
    listing = [*listed([csv(tmp_path, "now", range(1000 * SECOND, 5000 * SECOND, SECOND))])]
    plan = planner(listing)
    place = plan.latest(NOTHING, 1000)
    listing += listed([csv(tmp_path, "old", range(0, 4000 * SECOND, SECOND))])
    seen = [
        {name: len(times) for name, times in rows(plan, start, end).items()}
        for start, end in first_batches(plan, 1000, 4, place)
    ]
    assert seen[:2] == [{"old": 1000}, {"old": 1000}]
    assert all(seen[-1][name] == pytest.approx(500, abs=20) for name in ("now", "old"))


def test_the_offset_records_since_when_rows_wait_and_metrics_show_for_how_long(tmp_path):
    plan = planner(listed([csv(tmp_path, "a", range(0, 1000 * SECOND, SECOND)),
                           csv(tmp_path, "b", range(100 * SECOND, 1000 * SECOND, SECOND))]))  # fmt: skip
    first = plan.latest(NOTHING, 100)
    assert first.waiting == {"ts": pytest.approx(0, abs=2 * SECOND)}
    shown = {one.input: one.waiting for one in plan.seen(0.0)}
    assert shown == {"a": pytest.approx(899, abs=2), "b": pytest.approx(899, abs=2)}
    second = plan.latest(first, 100)
    assert second.waiting == {"ts": pytest.approx(100 * SECOND, abs=5 * SECOND)}
    assert Offsets.of(second.to_json()) == second
    last = plan.latest(second, 5000)
    assert last.waiting == {"ts": pytest.approx(150 * SECOND, abs=5 * SECOND)}, "the last batch of a backlog, too"
    assert {one.waiting for one in plan.seen(1.0)} == {None}
    assert (first.more, second.more, last.more) == (True, True, False)
    with (tmp_path / "a.csv").open("ab") as file:
        file.write(lines([2000 * SECOND], "csv"))
    after = planner(plan.listing()).latest(Offsets.of(last.to_json()), 5000)
    assert after.waiting == {}
    assert not {"waiting", "more"} & after.to_json().keys()


@pytest.mark.parametrize("by", [3600 * SECOND, -3600 * SECOND, 10_000 * BATCHES * SECOND])
def test_every_row_is_read_once_whatever_a_clock_shows(tmp_path, by: int):
    """And one whose clock is farther ahead than many batches gets some rows in every batch."""
    start = 10_000 * SECOND
    own = {"off": range(start + by, start + by + 300 * SECOND, SECOND), "a": range(start, start + 600 * SECOND, SECOND),
           "b": range(start, start + 1200 * SECOND, SECOND)}  # fmt: skip
    plan = planner(listed([csv(tmp_path, name, times) for name, times in own.items()]))
    seen = [rows(plan, place, end) for place, end in batches(plan, 100)]
    for name, times in own.items():
        assert [time for batch in seen for time in batch.get(name, ())] == list(times)
    assert all(len(batch.get("off", ())) == 5 for batch in seen[:15]) == (by > 3600 * SECOND)


def test_inputs_without_event_times_get_their_fair_share(tmp_path):
    (tmp_path / "no.csv").write_text("1,no time\n" * 400)
    others = csv(tmp_path, "a", range(300)), csv(tmp_path, "b", range(600))
    plan = planner(listed([{"path": f"{tmp_path}/no.csv", "name": "no"}, *others]))
    for place, end in first_batches(plan, 90, 3):
        assert end.at["no"] - place.at.get("no", 0) == 30 * len("1,no time\n")


def test_a_batch_that_takes_all_rows_reads_no_samples(tmp_path):
    plan = planner(listed([csv(tmp_path, "a", range(50)), csv(tmp_path, "b", range(20))]))
    assert plan.times is not None
    place = plan.latest(NOTHING, 100)
    assert not plan.times.known
    assert len(times_of(plan, NOTHING, place)) == 70


def test_samples_are_kept_only_while_their_places_matter(tmp_path):
    plan = planner(listed([csv(tmp_path, name, range(4000)) for name in "abc"]))
    assert plan.times is not None
    for _ in first_batches(plan, 300, 10):
        assert 0 < len(plan.times.known) <= 15


def test_a_file_that_vanishes_while_it_is_sampled_stops_no_other(tmp_path):
    plan = planner(listed([csv(tmp_path, name, range(1000)) for name in "abc"]))
    place = plan.latest(NOTHING, 30)
    assert plan.times is not None
    plan.times.known = {}
    (tmp_path / "b.csv").unlink()
    end = plan.latest(place, 30)
    assert end.at["b"] == place.at["b"]
    assert end.at["a"] > place.at["a"]


@given(text=st.binary(max_size=60).map(lambda text: text.replace(b"0", b"\n")), near=st.integers(0, 70),
       count=st.integers(1, 5), stop=st.integers(0, 70))  # fmt: skip
def test_a_sample_of_a_file_is_the_first_whole_lines(text: bytes, near: int, count: int, stop: int):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_bytes(text)
        start, end = GrowingFile(str(path)).sample(near, count, stop)
    bounds = [0, *(at + 1 for at in range(len(text)) if text[at] == ord("\n"))]
    whole = [(begin, after) for begin, after in pairwise(bounds) if begin >= near and after <= stop]
    expected = whole[:count]
    assert (start, end) == ((expected[0][0], expected[-1][1]) if expected else (near, near))


def test_the_time_column_is_the_only_timestamp_or_the_named_one():
    two = COLUMNS.append(pa.field("sent", pa.timestamp("us")))
    assert time_column(COLUMNS, None) == "ts"
    assert time_column(two, None) is None
    assert (time_column(two, "sent"), time_column(two, "x")) == ("sent", "x")
    with pytest.raises(ConfigError, match="the schema has no column 'tz'; use one of x, ts"):
        time_column(COLUMNS, "tz")
    with pytest.raises(ConfigError, match="time_column 's' must be a timestamp, a date or a whole number, got string"):
        time_column(pa.schema([("s", pa.string())]), "s")
