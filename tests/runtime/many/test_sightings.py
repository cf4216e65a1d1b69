"""When rows came, as looks at inputs show it: against all looks, and with real files."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.many.read_batches import NOTHING, grow

from skypane.runtime.spark.sources.many.growing_inputs import FileInput
from skypane.runtime.spark.sources.many.input_kind import InputExtent
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.runtime.spark.sources.many.sightings import Sightings

A, B = FileInput("/a.csv"), FileInput("/b.csv")


@given(st.data())
def test_the_last_row_came_with_the_first_look_that_found_it(data: st.DataObject):
    """Each look finds more of two inputs, and each batch reads some of what is there."""
    sightings, read = Sightings(), {"a": 0, "b": 0}
    looks: list[tuple[float, dict[str, int]]] = []
    for now in range(1, data.draw(st.integers(1, 12)) + 1):
        before = looks[-1][1] if looks else {"a": 0, "b": 0}
        looks.append((float(now), {name: end + data.draw(st.integers(0, 3)) for name, end in before.items()}))
        sightings.look(now, {name: InputExtent(A, 0, end) for name, end in looks[-1][1].items()})
        until = {name: data.draw(st.integers(read[name], end)) for name, end in looks[-1][1].items()}
        moved = {name: end for name, end in until.items() if end > read[name]}
        came = [next(at for at, ends in looks if ends[name] >= end) for name, end in moved.items()]
        assert sightings.seen(moved, now) == (max(came) if came else now)
        read = until


def test_the_time_of_a_file_counts_if_it_is_after_the_look_before():
    sightings = Sightings()
    looks = [(10.0, 4, 3.0), (20.0, 8, 15.0), (30.0, 12, 15.0), (40.0, 16, 99.0)]
    for now, end, written in looks:
        sightings.look(now, {"a": InputExtent(A, 0, end, written=written)})
    assert [sightings.seen({"a": end}, 50.0) for end in (4, 8, 12, 16, 17)] == [10.0, 15.0, 30.0, 40.0, 50.0]


def test_of_very_many_looks_some_are_forgotten_and_no_row_comes_earlier_than_it_did():
    sightings = Sightings()
    for now in range(1_000):
        sightings.look(now, {"a": InputExtent(A, 0, now + 1), "b": InputExtent(B, 0, 1)})
    shown = [sightings.seen({"a": end, "b": 1}, 1_000.0) for end in range(1, 1_001)]
    assert all(true <= told for true, told in enumerate(shown))
    assert shown[-1] == 999


def test_an_offset_has_the_time_at_which_its_last_row_came_also_if_it_is_read_later(tmp_path: Path):
    plan = Planner(lambda: [FileInput(f"{tmp_path}/*.csv")], 2)
    grow(tmp_path, a=4)
    first = plan.sighted(NOTHING, plan.latest(NOTHING, 3), 100.0)
    assert first.seen == 100_000_000
    grow(tmp_path, a=4)
    os.utime(tmp_path / "a.csv", (103.0, 103.0))
    second = plan.sighted(first, plan.latest(first, 1), 107.0)
    third = plan.sighted(second, plan.latest(second, 3), 109.0)
    assert [second.seen, third.seen] == [100_000_000, 103_000_000]
    assert Offsets.of(third.to_json()) == third
    last = plan.sighted(third, plan.latest(third, None), 111.0)
    assert plan.sighted(last, plan.latest(last, None), 113.0) == last, "nothing has come"
    assert last.seen == 103_000_000
