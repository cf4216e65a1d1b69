"""What befalls drivers is a function of a seed, and holds to the means that there are."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from tests.nature import schedule
from tests.nature.schedule import Means, lives

EVERYTHING = Means(executors=True, receiver=True, broker=True)


def drawn(means: Means, seed: int = 1) -> Counter[str]:
    """Count what happens in many lives."""
    return Counter(act.kind for life in islice(lives(seed, means), 500) for act in (*life.acts, life.end))


def test_a_seed_is_a_schedule():
    assert [*islice(lives(7, EVERYTHING), 50)] == [*islice(lives(7, EVERYTHING), 50)]
    assert [*islice(lives(7, EVERYTHING), 50)] != [*islice(lives(8, EVERYTHING), 50)]


def test_everything_happens():
    assert set(drawn(EVERYTHING)) == {*schedule.ENDS, *EVERYTHING.drawn()}
    assert {*schedule.KILLS} <= set(drawn(EVERYTHING))


def test_what_is_not_there_is_left_alone():
    bare = Means(weather=False, full=False, bits=False)
    assert set(drawn(bare)) == {*schedule.ENDS, schedule.WORKER, schedule.DAEMON, schedule.INTERRUPT}
    assert not any(life.bit for life in islice(lives(1, bare), 500))


def test_each_life_ends_once_and_last():
    for life in islice(lives(3, EVERYTHING), 500):
        assert life.end.kind in schedule.ENDS
        assert not {act.kind for act in life.acts} & {*schedule.ENDS}
        assert all(act.after >= 0 and act.seconds >= 0 for act in (*life.acts, life.end))
