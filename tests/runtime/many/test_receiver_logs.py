"""Logs of receivers as inputs: how far they go, what is read of them, what is lost; with real logs, without Spark."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.many import read_batches
from tests.runtime.many.read_batches import NOTHING, N, batches, parts_of, values_of
from tests.runtime.receiving import logs
from tests.runtime.receiving.test_retention import checkpoint

from skypane.runtime.receiving.retention import passed
from skypane.runtime.receiving.segments import segments_of
from skypane.runtime.row_parser import Malformed
from skypane.runtime.spark.sources.many import receiver_logs
from skypane.runtime.spark.sources.many.discovery import listed
from skypane.runtime.spark.sources.many.input_kind import OffsetRange
from skypane.runtime.spark.sources.many.offsets import Offsets
from skypane.runtime.spark.sources.many.planning import Planner
from skypane.types import CheckpointError


def write(folder: Path, numbers: range, segment_bytes: int = 64) -> None:
    logs.write(folder, *(f"{n}\n".encode() for n in numbers), segment_bytes=segment_bytes)


def planner(folder: Path, on_loss: str = "fail", **more: object) -> Planner:
    return read_batches.planner({"segments": str(folder), "format": "csv", **more}, on_loss=on_loss)


def rows(plan: Planner, start: Offsets, end: Offsets) -> list[int]:
    return [
        n for _, found in parts_of(plan, start, end, N) for n in values_of(found, lambda one: pytest.fail(str(one)))
    ]


@given(count=st.integers(1, 60), most=st.integers(1, 40), budget=st.integers(1, 25))
def test_each_line_comes_once_whatever_the_segments_and_the_budget(count: int, most: int, budget: int):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "log")
        plan, place, found = planner(folder), NOTHING, list[int]()
        assert plan.latest(place, budget) == place  # nobody has written yet
        for numbers in (range(count), range(count, 2 * count)):
            write(folder, numbers, most)
            for start, end in batches(plan, budget, place):
                part = rows(plan, start, end)
                assert 0 < len(part) <= budget
                assert rows(planner(folder), start, end) == part
                found, place = found + part, end
        assert found == list(range(2 * count))


def test_a_pattern_finds_logs_and_nothing_else(tmp_path):
    write(tmp_path / "meters" / "a", range(3))
    write(tmp_path / "meters" / "b", range(2))
    (tmp_path / "meters" / "none").mkdir()
    (tmp_path / "meters" / "receiver").touch()
    place = planner(tmp_path / "meters" / "*").latest(NOTHING, None)
    assert place.at == {f"{tmp_path}/meters/a": 6, f"{tmp_path}/meters/b": 4}


def test_a_line_that_does_not_parse_is_reported_with_its_place_in_all_that_was_received(tmp_path):
    logs.write(tmp_path, b"1\n", b"none\n", b"3\n", segment_bytes=1)
    plan = planner(tmp_path)
    ((part,),) = plan.assigned(NOTHING, plan.latest(NOTHING, None))
    assert (part.start, part.end) == (0, 9)
    malformed = [found for _, found in receiver_logs.read([part], N) if isinstance(found, Malformed)]
    assert [(one.offset, one.line) for one in malformed] == [(2, "none")]


def test_removed_segments_are_not_lost_for_a_query_that_has_read_them_or_starts(tmp_path):
    write(tmp_path, range(40))
    first, second, *_ = segments_of(str(tmp_path))
    read = Offsets({str(tmp_path): second.begin})
    Path(first.path).unlink()
    plan = planner(tmp_path)
    of_both = [len(rows(plan, start, plan.latest(start, None))) for start in (read, NOTHING)]
    assert of_both[0] == of_both[1]


def test_retention_finds_a_log_with_another_name(tmp_path):
    log = tmp_path / "log"
    write(log, range(40))
    plan = planner(log, name="basel")
    read = plan.latest(NOTHING, 30)
    state = checkpoint(tmp_path / "state", 0, read.to_json())
    assert read.at.keys() == {"basel"}
    assert 0 < passed(log, [state])[-1].end <= read.at["basel"]
    again = planner(log, name="bern").latest(Offsets.of(read.to_json()), 5)  # under another name, it is begun again
    assert passed(log, [checkpoint(tmp_path / "again", 0, again.to_json())]) == []


def test_what_was_removed_before_it_was_read_is_an_error_or_skipped_and_counted(tmp_path):
    write(tmp_path, range(40))
    first, second, *_ = segments_of(str(tmp_path))
    read = Offsets({str(tmp_path): 2})
    Path(first.path).unlink()
    message = rf"were removed up to byte {second.begin}, but only 2 bytes were read.*read_by"
    with pytest.raises(CheckpointError, match=message):
        planner(tmp_path).latest(read, None)
    plan = planner(tmp_path, on_loss="skip")
    after = plan.latest(read, None)
    assert after.lost == 1
    assert rows(plan, read, after)[-1] == 39


def test_another_log_in_its_place_and_a_batch_whose_segments_have_gone_are_errors(tmp_path):
    write(tmp_path, range(4))
    with pytest.raises(CheckpointError, match="ends at byte 8, but 100 bytes were read: it was replaced"):
        planner(tmp_path).latest(Offsets({str(tmp_path): 100}), None)
    one = listed([{"segments": str(tmp_path), "format": "csv"}])[0]
    (path,) = [part.path for part in segments_of(str(tmp_path))]
    Path(path).unlink()
    with pytest.raises(CheckpointError, match="a started batch needs data that cannot be read"):
        list(receiver_logs.read([OffsetRange(one, 0, 8)], N))  # type: ignore[arg-type]
