"""The merge of logs against a sort: each line once, in order, whatever arrives when and whatever is killed."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.receiving.logs import lines

from skypane.runtime.receiving import merged_log
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.merge_commit import MERGED, REJECTED
from skypane.runtime.receiving.merged_log import MergedLog
from skypane.runtime.receiving.retention import remove_merged
from skypane.runtime.receiving.segments import END, end_text, segments_of
from skypane.runtime.receiving.time_order import TimeOrder
from skypane.types import CheckpointError, ConfigError

ORDER = TimeOrder(time="t", time_unit="second", idle_after="60 seconds")
CLOCK = 10**15


class Merging:
    """Inputs with logs, and their merge, at times that the test states."""

    def __init__(self, folder: Path, names: Sequence[str], order: TimeOrder = ORDER, memory: int = 64 << 20) -> None:
        self.folder, self.names, self.order, self.memory = folder, names, order, memory
        self.logs = {name: SegmentLog(folder / name, 200) for name in names}
        self.merge = MergedLog(folder, names, order, 300, memory=memory)

    def put(self, name: str, *times: object) -> None:
        """Append a line for each time; each line has its number in its log."""
        begin = len(lines(self.folder / name))
        rows = [{"t": time, "of": name, "n": begin + at} for at, time in enumerate(times)]
        self.text(name, "".join(json.dumps(row) + "\n" for row in rows))

    def text(self, name: str, text: str) -> None:
        self.logs[name].append(text.encode())

    def step(self, now: float = 0.0, **times: Sequence[object]) -> None:
        """Append lines of these times to the logs of inputs, and merge the logs at `now`."""
        for name, some in times.items():
            self.put(name, *some)
        while self.merge.step({name: log.end for name, log in self.logs.items()}, now, CLOCK):
            pass

    def restart(self, names: Sequence[str] | None = None) -> None:
        self.close()
        self.__init__(self.folder, names or self.names, self.order, self.memory)  # type: ignore[misc]

    @property
    def merged(self) -> list[tuple[int, str, int]]:
        return [(row["t"], row["of"], row["n"]) for row in map(json.loads, lines(self.folder / MERGED))]

    @property
    def rejected(self) -> list[tuple[str, str]]:
        return [(row["input"], row["reason"]) for row in map(json.loads, lines(self.folder / REJECTED))]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        self.merge.close()
        for log in self.logs.values():
            log.close()


ARRIVALS = st.lists(st.one_of(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 2), min_size=1, max_size=4)),
                              st.sampled_from(["step", "restart"])), max_size=14)  # fmt: skip


@given(ARRIVALS)
def test_the_merged_log_is_the_sorted_lines_whatever_arrives_when_and_over_restarts(arrivals):
    with tempfile.TemporaryDirectory() as name, Merging(Path(name), "abc") as made:
        sent: dict[str, list[int]] = {"a": [], "b": [], "c": []}
        for event in arrivals:
            if event == "step":
                made.step()
            elif event == "restart":
                made.restart()
            else:
                of, steps = event
                for more in steps:
                    sent[of].append((sent[of] or [0])[-1] + more)
                made.put(of, *sent[of][-len(steps) :])
        made.step()
        everything = sorted((time, of, at) for of, times in sent.items() for at, time in enumerate(times))
        newest = [(times[-1] if times else -1, of) for of, times in sent.items()]
        assert made.merged == [one for one in everything if all(one[:2] <= last for last in newest)]
        assert made.rejected == []
        made.step(1.0)  # from here on lines wait
        made.step(100.0)
        made.step(200.0)
        assert made.merged == everything


def test_a_silent_input_is_waited_for_as_long_as_idle_after_and_its_later_lines_are_late(tmp_path):
    with Merging(tmp_path, "ab") as made:
        made.step(a=[1], b=[2])
        made.step(10.0, a=[5, 6])
        made.step(69.0)
        assert made.merged == [(1, "a", 0), (2, "b", 0)]
        assert (made.merge.status.waiting, made.merge.status.waits_for) == (2, "b")
        made.step(70.0)
        assert made.merged == [(1, "a", 0), (2, "b", 0), (5, "a", 1), (6, "a", 2)]
        made.step(71.0, b=[4, 7], a=[8])
        assert made.merged[4:] == [(7, "b", 2)]
        assert made.rejected == [("b", "late")]
        assert made.merge.status.rejected == {("b", "late"): 1}


@pytest.mark.parametrize("restarts", [False, True])
def test_the_reason_of_a_rejected_line_is_the_same_after_a_restart(tmp_path, restarts):
    """The line 2 is behind the line 3 of its own input, which was merged before the restart."""
    with Merging(tmp_path, "ab") as made:
        made.step(a=[3, 5], b=[3])
        assert [time for time, _, _ in made.merged] == [3, 3]
        if restarts:
            made.restart()
        made.step(b=[2, 6])
        assert made.rejected == [("b", "out of order")]
        assert [time for time, _, _ in made.merged] == [3, 3, 5]


def test_lines_wait_for_a_slow_input_although_it_was_silent(tmp_path):
    """An input that sends every few minutes is idle in between; what it sends within idle_after is in order."""
    with Merging(tmp_path, "ab") as made:
        made.step(a=[1], b=[1])
        made.step(200.0)  # both are silent
        made.step(300.0, a=[300])
        made.step(310.0, b=[299])
        assert made.merged[2:] == [(299, "b", 1)]
        assert made.rejected == []


def test_an_input_whose_lines_are_not_read_yet_is_not_silent(tmp_path, monkeypatch):
    monkeypatch.setattr(merged_log, "_LEAST", 1)
    with Merging(tmp_path, "abc", memory=3) as made:  # a line at a time
        made.put("a", 100)
        made.put("b", *range(1, 51))
        made.merge.step({name: log.end for name, log in made.logs.items()}, 0.0, CLOCK)
        made.step(1_000.0)  # c and a are silent; b is not, although it has brought nothing for as long
        assert [time for time, _, _ in made.merged] == list(range(1, 51))
        assert made.rejected == []


def test_an_input_that_is_far_ahead_stays_on_disk_and_loses_nothing(tmp_path):
    with Merging(tmp_path, "ab", memory=1) as made:  # 64 KiB an input, the least share
        for begin in range(0, 20_000, 1_000):
            made.put("a", *range(begin, begin + 1_000))
        assert made.logs["a"].end > 400_000
        made.step()
        ahead = made.merge._waiting[0]
        assert 0 < ahead.size <= 2 << 16
        made.step(b=[9_999, 30_000])
        assert [time for time, of, _ in made.merged if of == "a"] == list(range(20_000))


@pytest.mark.parametrize(("text", "reason"), [
    ('{"n": 1}', "null t"), ('{"t": null}', "null t"), ("no json", "malformed: a row must be an object, from { to }"),
    ('{"t": 99999999999999}', "absurd t"), ('{"t": 1000003601}', "future"), ('{"t": 4}', "out of order"),
])  # fmt: skip
def test_a_line_without_a_place_is_rejected_with_its_reason_and_counted(tmp_path, text: str, reason: str):
    with Merging(tmp_path, "a") as made:
        made.put("a", 5)
        made.text("a", text + "\n")
        made.text("a", "\n")
        made.step(a=[6])
        assert [time for time, _, _ in made.merged] == [5, 6]
        (row,) = map(json.loads, lines(tmp_path / REJECTED))
        assert (row["input"], row["line"], row["reason"]) == ("a", text, reason)
        assert row["offset"] == len('{"t": 5, "of": "a", "n": 0}\n')
        assert sum(made.merge.status.rejected.values()) == 1


AHEAD = CLOCK // 10**6 + 59 * 60


def now(count: int, begin: int = 0) -> list[int]:
    """Return times of lines of clients whose clocks are right, in seconds."""
    return [CLOCK // 10**6 + begin + at for at in range(count)]


@pytest.mark.parametrize("leaps", [1, 3])
def test_a_clock_that_is_ahead_costs_its_own_lines_only(tmp_path, leaps: int):
    with Merging(tmp_path, "ab") as made:
        made.step(a=[*now(5), *[AHEAD] * leaps], b=now(5))
        made.step(a=now(40, 5), b=now(40, 5))
        assert [time for time, *_ in made.merged] == sorted([*now(44), *now(44), now(45)[-1]])
        assert made.rejected == [("a", "future")] * leaps


def test_lines_that_leap_ahead_together_are_merged(tmp_path):
    """A device whose clock is wrong has an input of its own, or all of its clients are ahead."""
    with Merging(tmp_path, "ab") as made:
        made.step(a=[*now(5), *range(AHEAD, AHEAD + 40)], b=range(AHEAD, AHEAD + 40))
        assert len(made.merged) == 5 + 2 * 40 - 1
        assert made.rejected == []


@pytest.mark.parametrize("after", [0, 3])
def test_a_leap_is_judged_by_what_comes_within_the_wait_for_idle_inputs(tmp_path, after: int):
    with Merging(tmp_path, "a") as made:
        made.step(a=[*now(5), AHEAD])
        made.step(10.0, a=now(after, 5))
        assert [time for time, *_ in made.merged] == now(5)
        made.step(70.0)
        assert [time for time, *_ in made.merged] == (now(8) if after else [*now(5), AHEAD])
        assert made.rejected == ([("a", "future")] if after else [])


def test_an_input_of_lines_without_times_holds_nothing_up(tmp_path):
    with Merging(tmp_path, "abc") as made:
        made.put("c", 1, 2)
        for now in range(0, 200, 5):
            made.text("b", "no json\n" * 100)
            made.step(float(now))
        assert [time for time, _, _ in made.merged] == [1, 2]
        assert len(made.rejected) == 4_000


def test_times_may_be_texts_and_columns_of_csv(tmp_path):
    order = TimeOrder(time="at", format="csv", columns=["n", "at"])  # type: ignore[arg-type]
    with Merging(tmp_path, "ab", order) as made:
        made.text("a", "1,1999-01-01T00:00:02Z\n2,\n")
        made.text("b", "3,1999-01-01T01:00:01+01:00\n4,1999-01-01T00:00:03Z\n")
        made.step()
        assert lines(tmp_path / MERGED) == ["3,1999-01-01T01:00:01+01:00", "1,1999-01-01T00:00:02Z"]
        assert made.rejected == [("a", "null at")]


def test_a_kill_at_any_byte_leaves_each_line_once(tmp_path):
    """The logs are cut where a kill may have cut them, after the block was written and before its end was noted."""
    first = tmp_path / "first"
    with Merging(first, "ab") as made:
        made.step(a=[1], b=[2])
        before = {name: len("\n".join(lines(first / name)).encode()) for name in (MERGED, REJECTED)}
        made.text("a", "no json\n")
        made.step(a=[3, 4], b=[5])
        expected = made.merged, made.rejected
    assert len(expected[0]) == 4
    for log in (MERGED, REJECTED):
        (segment,) = segments_of(str(first / log))[-1:]
        begin = 0 if not before[log] else before[log] + 1
        for cut in {*range(begin - segment.begin, segment.end - segment.begin, 7), segment.end - segment.begin}:
            again = tmp_path / "again"
            shutil.copytree(first, again)
            os.truncate(again / log / Path(segment.path).name, cut)
            (again / log / END).write_bytes(end_text(begin))
            draft = again / MERGED / "merge.0.part"
            draft.touch()
            with Merging(again, "ab") as made:
                made.step()
                assert (made.merged, made.rejected) == expected
            assert not draft.exists()
            shutil.rmtree(again)


@pytest.mark.parametrize("failing", range(1, 5))
def test_a_full_disk_loses_nothing_and_the_merge_continues(tmp_path, monkeypatch, failing: int):
    """From the so-manieth sync of a step on: of the block, of its folder, of the merged and of the rejected log."""
    with Merging(tmp_path, "a") as made:
        made.step(a=[1])
        made.put("a", 2, "x")
        real, calls = os.fsync, itertools.count(1)

        def full(file: int) -> None:
            if next(calls) >= failing:
                raise OSError(28, "No space left on device")
            real(file)

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            made.step()
        monkeypatch.setattr(os, "fsync", real)
        made.merge.again()
        made.step()
        assert [time for time, _, _ in made.merged] == [1, 2]
        assert [of for of, _ in made.rejected] == ["a"]


def test_inputs_may_be_added_and_removed(tmp_path):
    with Merging(tmp_path, "ab") as made:
        made.step(a=[1, 4, 6], b=[5])
        made.restart("ac")  # what b has sent is merged, and no more is waited for
        made.step(c=[3, 5, 7], a=[8])
        merged = [(time, of) for time, of, _ in made.merged]
        assert merged == [(1, "a"), (4, "a"), (5, "b"), (5, "c"), (6, "a"), (7, "c")]
        assert made.rejected == [("c", "late")]


def test_segments_of_an_input_go_when_they_are_merged_and_not_before(tmp_path):
    with Merging(tmp_path, "ab") as made:
        for time in range(40):
            made.put("a", time)
        made.step(b=[20])
        gone = remove_merged(tmp_path / "a", made.merge.at["a"])
        assert len(gone) >= 2
        assert gone[-1].end <= made.merge.at["a"]
        assert remove_merged(tmp_path / "a", made.merge.at["a"]) == []
        made.restart()
        made.step(b=[50])
        assert [time for time, of, _ in made.merged if of == "a"] == list(range(40))


def test_a_merged_log_that_was_replaced_is_refused(tmp_path):
    with Merging(tmp_path, "a") as made:
        made.step(a=[1])
    shutil.rmtree(tmp_path / REJECTED)
    for file in (tmp_path / MERGED).glob("0*"):
        file.unlink()
    (tmp_path / MERGED / END).write_bytes(end_text(9_999))
    with pytest.raises(CheckpointError, match="one of them was replaced"):
        MergedLog(tmp_path, "a", ORDER, 300)


@pytest.mark.parametrize(("given", "message"), [
    ({"time": ""}, "order 'by time' needs time"),
    ({"time": "t", "format": "xml"}, "format must be json or csv"),
    ({"time": "t", "format": "csv"}, "format csv needs columns"),
    ({"time": "t", "columns": ["t"]}, "columns is only for format csv"),
    ({"time": "t", "columns": "t"}, "columns must be a list of names"),
    ({"time": "t", "time_unit": "day"}, "time_unit must be one of second, millisecond, microsecond, got 'day'"),
    ({"time": "t", "idle_after": "0 s"}, "idle_after must be longer than 0"),
])  # fmt: skip
def test_an_order_that_cannot_be_kept_is_refused(given, message: str):
    with pytest.raises(ConfigError, match=message):
        TimeOrder(**given)
