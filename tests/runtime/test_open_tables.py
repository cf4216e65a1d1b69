"""Tables of open formats, Delta and Iceberg, as outputs: what holds for both, whatever happens to the drivers and beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.rows_of_batches import NO_SPARK, VERSIONS, numbers, of
from tests.runtime.table_histories import History, Interposed, Killed, dies_after, dies_before, steps_of
from tests.runtime.table_places import PLACES, OpenPlace

from skypane.runtime.spark.sinks.sink import Sink
from skypane.types import CheckpointError


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> OpenPlace:
    return PLACES[request.param](tmp_path)


@pytest.fixture
def interposed(place: OpenPlace, monkeypatch: pytest.MonkeyPatch) -> Interposed:
    return place.interposed(monkeypatch)


def test_a_batch_that_comes_again_makes_no_version_of_the_table(place: OpenPlace):
    place.started().write(NO_SPARK, numbers(3, 13), 0)
    second = place.started(0, driver="driver-2")
    version = place.version()
    second.write(NO_SPARK, numbers(13, 3), 0)
    assert place.version() == version


def test_a_driver_that_dies_before_or_after_a_commit_leaves_the_batch_once(place: OpenPlace, interposed: Interposed):
    for batch, step in enumerate((dies_before, dies_after)):
        sink = place.started(batch, driver=f"driver-{batch}")
        interposed.step = step
        with pytest.raises(Killed):
            sink.write(NO_SPARK, numbers(batch, 10 + batch), batch)
        place.started(batch, driver=f"driver-{batch}b").write(NO_SPARK, numbers(batch, 10 + batch), batch)
    assert place.rows() == [0, 1, 10, 11]


@pytest.mark.parametrize("outcome", ["loses the reply", "is lost"])
def test_a_commit_whose_reply_is_lost_is_there_once(place: OpenPlace, interposed: Interposed, outcome: str):
    sink = place.started()
    interposed.step = interposed.outcomes[outcome]
    sink.write(NO_SPARK, numbers(1), 0)
    sink.write(NO_SPARK, numbers(2), 1)
    assert place.rows() == [1, 2]


def test_a_driver_that_was_frozen_before_its_commit_adds_nothing_after_its_successor(
    place: OpenPlace, interposed: Interposed
):
    """Its successor has written that batch, and two more; the commit is refused, and it finds another name in the note."""
    frozen = place.started(driver="driver-1")
    frozen.write(NO_SPARK, numbers(0), 0)

    def others_write(commit: Callable[[], Any]) -> Any:
        successor = place.started(1, driver="driver-2")
        for batch in (1, 2, 3):
            successor.write(NO_SPARK, numbers(batch), batch)
        return commit()

    interposed.step = others_write
    with pytest.raises(CheckpointError, match="another driver of this query has started and taken over"):
        frozen.write(NO_SPARK, numbers(1), 1)
    assert place.rows() == [0, 1, 2, 3]


def test_a_driver_that_was_frozen_while_its_successor_only_started_adds_nothing(
    place: OpenPlace, interposed: Interposed
):
    frozen = place.started(driver="driver-1")

    def another_starts(commit: Callable[[], Any]) -> Any:
        place.started(driver="driver-2")
        return commit()

    interposed.step = another_starts
    with pytest.raises(CheckpointError, match="taken over"):
        frozen.write(NO_SPARK, numbers(1), 0)
    assert place.rows() == []


def test_a_driver_that_is_fenced_while_it_opens_the_sink_takes_nothing(place: OpenPlace, interposed: Interposed):
    """It was frozen between the look at its claim and its commit, which is refused; it looks again."""
    place.started().write(NO_SPARK, numbers(0), 0)
    successor: list[Sink] = []

    def fenced() -> None:
        if successor:
            raise CheckpointError("another driver has taken over")

    def another_starts(commit: Callable[[], Any]) -> Any:
        successor.append(place.started(1, driver="driver-2"))
        return commit()

    interposed.step = another_starts
    with pytest.raises(CheckpointError, match="another driver has taken over"):
        place.started(1, driver="driver-1", check=fenced)
    successor[0].write(NO_SPARK, numbers(1), 1)
    assert place.rows() == [0, 1]


@pytest.mark.long
@pytest.mark.parametrize("name", PLACES)
@given(data=st.data())
def test_any_sequence_of_deliveries_kills_and_starts_leaves_each_batch_once(name: str, data: st.DataObject):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        place = PLACES[name](Path(folder))
        steps = data.draw(st.lists(st.sampled_from(steps_of(place.maintenance)), max_size=10))
        history = History(place, place.interposed(patched), iter(steps))
        history.play()
        history.check()


def test_readers_see_a_version_at_once(place: OpenPlace, interposed: Interposed):
    """The rows that go and those that come are one commit: what is read before it has the version before."""
    sink = place.started(schema=VERSIONS)
    sink.write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1), (1, 0, False, "Oslo", 2)), 0)
    seen: list[Any] = []

    def read(commit: Callable[[], Any]) -> Any:
        seen.append(place.rows())
        committed = commit()
        seen.append(place.rows())
        return committed

    interposed.step = read
    sink.write(NO_SPARK, of(VERSIONS, (0, 1, False, "Rome", 7)), 1)
    assert seen == [[1, 2], [2, 7]]


@pytest.mark.parametrize("alone", [{"role": "front"}, {"schema": VERSIONS}])
def test_a_table_from_which_a_query_removes_rows_belongs_to_it(place: OpenPlace, alone: dict[str, Any]):
    place.started(schema=VERSIONS).write(NO_SPARK, of(VERSIONS, (0, 0, False, "Oslo", 1)), 0)
    for claim in (alone, {}):
        with pytest.raises(
            CheckpointError, match=r"has the output of query q, .* remove its property 'skypane\.batches"
        ):
            place.started(**{"query": "another", "schema": VERSIONS, **claim})
    assert place.rows() == [1]
