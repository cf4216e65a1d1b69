"""Algorithm 1: the example of paper 3, figure 5, by hand, and laws that hold for every strategy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.control.admission.assignment import Assignment, StreamMove, give_back, place
from skypane.control.admission.strategies import STRATEGIES, Reader, ReaderCapacity, StreamLoad
from skypane.types import ConfigError

# Figure 5 is a drawing: what its text says of loads, choices and places holds for these numbers, which are ours.
#                  average  X(t+1)  X(t+k)  X^m(t+k)
S1 = StreamLoad("s1", 5, 5, 5)
S2 = StreamLoad("s2", 3, 3, 5)
S3 = StreamLoad("s3", 1, 1, 1, 4)
S4 = StreamLoad("s4", 3, 3, 3)
S5 = StreamLoad("s5", 4, 4, 4)
S6 = StreamLoad("s6", 8, 8, 8)
NEW = (StreamLoad("s7", 4, 4, 4, 6), StreamLoad("s8", 4, 4, 4, 3), StreamLoad("s9", 4, 4, 4, 2))
READERS = (Reader(1, (S1, S2, S3)), Reader(2, (S4, S5)), Reader(3, (S6,)))
TEN = ReaderCapacity(capacity=10)
DRF_M = STRATEGIES["DRF-M"]


def test_figure_5_step_1_the_load_of_n1_is_12_and_its_victim_is_s3():
    assert [DRF_M.load(reader.streams) for reader in READERS] == [12, 7, 8]
    assert [DRF_M.is_overloaded(reader, TEN) for reader in READERS] == [True, False, False]
    assert DRF_M.pick_streams_to_move(READERS[0], TEN) == (S3,)


def test_figure_5_without_meta_data_the_victim_is_another():
    first = {name: max(READERS[0].streams, key=strategy.urgency).name for name, strategy in STRATEGIES.items()}
    assert first["DRF-M"] == "s3"
    assert (first["DRF"], first["ARD"]) == ("s2", "s1")


def test_figure_5_step_2_orders_by_meta_data():
    assert [stream.name for stream in DRF_M.placement_order([S3, *NEW])] == ["s7", "s3", "s8", "s9"]
    assert [stream.name for stream in STRATEGIES["DRF"].placement_order([S3, *NEW])] == ["s7", "s8", "s9", "s3"]


def test_figure_5_step_3_s7_and_s3_go_to_a_new_node_s8_to_n2_and_s9_to_n3():
    assert place(DRF_M, READERS, NEW, TEN) == Assignment(
        readers={1: ("s1", "s2"), 2: ("s4", "s5", "s8"), 3: ("s6", "s9"), 4: ("s3", "s7")},
        moves=(StreamMove("s3", 1, 4), StreamMove("s7", None, 4), StreamMove("s8", None, 2), StreamMove("s9", None, 3)),
        added=(4,),
    )


def test_rows_that_wait_beyond_the_bound_are_an_overload_too_but_move_nothing_that_fits():
    waiting = Reader(2, (S4, S5), latency=6.0)
    assert DRF_M.is_overloaded(waiting, TEN)
    assert place(DRF_M, [waiting], [], TEN).moves == ()
    assert not DRF_M.is_overloaded(waiting, ReaderCapacity(10, latency=7))


def test_ari_moves_the_slow_ones_and_ard_the_fast_ones():
    crowd = Reader(1, tuple(StreamLoad(f"s{rate}", rate, rate, rate) for rate in (1, 2, 3, 9)))
    picked = {name: [s.name for s in STRATEGIES[name].pick_streams_to_move(crowd, TEN)] for name in ("ARI", "ARD")}
    assert picked == {"ARI": ["s1", "s2", "s3"], "ARD": ["s9"]}


def test_par_packs_all_of_them_again():
    """Averages 8 5 4 4 4 4 3 3 1 in bins of 10, three of which there are: 8, 5+4+1, 4+4, and a fourth one for 4+3+3."""
    packed = {1: ("s6",), 2: ("s1", "s3", "s5"), 3: ("s7", "s8"), 4: ("s2", "s4", "s9")}
    assert place(STRATEGIES["PAR"], READERS, NEW, TEN).readers == packed


def test_a_stream_larger_than_a_reader_has_a_reader_to_itself_and_stays_there():
    huge, small = StreamLoad("huge", 30, 30, 30), StreamLoad("small", 1, 1, 1)
    placed = place(DRF_M, [], [huge, small], TEN)
    assert placed.readers == {1: ("huge",), 2: ("small",)}
    again = place(DRF_M, [Reader(1, (huge,)), Reader(2, (small,))], [], TEN)
    assert again.moves == ()


def test_where_no_reader_may_be_added_streams_go_where_most_room_is_or_stay():
    two = ReaderCapacity(10, max_readers=2)
    readers = [Reader(1, (StreamLoad("a", 9, 9, 9), StreamLoad("b", 8, 8, 8))), Reader(2, (StreamLoad("c", 1, 1, 1),))]
    assert place(DRF_M, readers, [], two).readers == {1: ("b",), 2: ("a", "c")}
    full = [Reader(1, (StreamLoad("a", 9, 9, 9), StreamLoad("b", 4, 4, 4))), Reader(2, (StreamLoad("c", 9, 9, 9),))]
    assert place(DRF_M, full, [], two).moves == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"capacity": 0}, "capacity is in rows per second of a reader, need more than 0, got 0"),
        ({"capacity": 1, "latency": 0}, "latency must be longer than 0, got 0 s"),
        ({"capacity": 1, "accepts": 2}, "accepts is a share of the capacity, need 0 < accepts <= 1, got 2"),
        ({"capacity": 1, "max_readers": 0}, "max_readers must be at least 1, got 0"),
    ],
)
def test_invalid_limits_are_refused(wrong, message: str):
    with pytest.raises(ConfigError, match=message):
        ReaderCapacity(**wrong)


RATE = st.floats(0, 12)
EVERY = st.sampled_from(sorted(STRATEGIES)).map(STRATEGIES.__getitem__)


@st.composite
def situations(draw) -> tuple[list[Reader], list[StreamLoad], ReaderCapacity]:
    expected = st.one_of(st.none(), RATE)
    streams = [StreamLoad(f"s{at}", draw(RATE), draw(RATE), draw(RATE), draw(expected))
               for at in range(draw(st.integers(0, 12)))]  # fmt: skip
    homes = [draw(st.sampled_from([0, 0, 1, 2, 5])) for _ in streams]
    readers = [
        Reader(number, tuple(s for s, home in zip(streams, homes, strict=True) if home == number),
               draw(st.sampled_from([0.0, 9.0])))
        for number in sorted(set(homes) - {0})
    ]  # fmt: skip
    limits = ReaderCapacity(
        10, accepts=draw(st.sampled_from([0.5, 1.0])), max_readers=draw(st.sampled_from([None, None, 3, 6]))
    )
    return readers, [s for s, home in zip(streams, homes, strict=True) if home == 0], limits


@given(strategy=EVERY, situation=situations())
def test_each_stream_is_on_one_reader_and_the_moves_are_the_changes(strategy, situation):
    readers, new, limits = situation
    placed = place(strategy, readers, new, limits)
    before = {stream.name: reader.number for reader in readers for stream in reader.streams}
    after = {name: number for number, names in placed.readers.items() for name in names}
    everyone = [*before, *(stream.name for stream in new)]
    assert sorted(name for names in placed.readers.values() for name in names) == sorted(everyone)
    if limits.max_readers is not None:
        assert len(placed.readers) <= max(limits.max_readers, len(readers))
    changed = [name for name, number in after.items() if before.get(name) != number]
    assert set(placed.moves) == {StreamMove(name, before.get(name), after[name]) for name in changed}
    assert set(placed.added) == placed.readers.keys() - {reader.number for reader in readers}


@given(strategy=EVERY, situation=situations())
def test_capacity_is_kept_where_it_can_be(strategy, situation):
    """With as many readers as it takes, only a stream that is alone exceeds a reader."""
    readers, new, limits = situation
    known = {stream.name: stream for reader in readers for stream in reader.streams} | {s.name: s for s in new}
    unbounded = ReaderCapacity(limits.capacity, accepts=limits.accepts)
    for names in place(strategy, readers, new, unbounded).readers.values():
        assert len(names) == 1 or strategy.load(known[name] for name in names) <= limits.capacity * (1 + 1e-6)


@given(strategy=EVERY.filter(lambda strategy: strategy.name != "PAR"), situation=situations())
def test_nothing_moves_when_nothing_is_overloaded(strategy, situation):
    readers, new, limits = situation
    calm = [reader for reader in readers if not strategy.is_overloaded(reader, limits)]
    assert place(strategy, calm, new, limits).redirected == ()


@given(strategy=EVERY, situation=situations(), up_to=st.floats(0.1, 0.9))
def test_a_reader_is_given_back_only_if_the_others_have_room_for_its_streams(strategy, situation, up_to: float):
    readers, _, limits = situation
    fewer = give_back(strategy, readers, limits, up_to)
    if fewer is None:
        return
    known = {stream.name: stream for reader in readers for stream in reader.streams}
    assert len(fewer.readers) < len(readers)
    assert sorted(name for names in fewer.readers.values() for name in names) == sorted(known)
    for to in {move.to for move in fewer.moves}:
        taken = strategy.load(known[name] for name in fewer.readers[to])
        assert taken <= up_to * limits.capacity * (1 + 1e-6)
