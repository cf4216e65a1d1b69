"""Segments go when all readers have passed them for good, and not before."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.runtime.receiving.logs import content, write

from skypane.runtime.receiving.checksums import remove
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.retention import committed, passed, remove_passed
from skypane.runtime.receiving.segments import between, segments_of
from skypane.types import CheckpointError


def checkpoint(folder: Path, done: int, *batches: dict[str, Any]) -> Path:
    """Write what Spark writes: offsets of batches, of which those up to `done` are committed."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").touch()
    for number, given in enumerate(batches):
        other = json.dumps({"logOffset": number})
        offset = given if "at" in given else {"at": given, "turn": 0, "lost": 0}
        text = "\n".join(["v1", json.dumps({"batchWatermarkMs": 0}), other, json.dumps(offset)])
        (folder / "offsets" / str(number)).write_text(text)
        (folder / "offsets" / f".{number}.crc").touch()
        if number <= done:
            (folder / "commits" / str(number)).write_text("v1\n{}")
    return folder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    write(folder, b"a\n", b"b\n", b"c\n", b"d\n", segment_bytes=1)
    return folder


def test_what_all_readers_have_committed_goes_and_the_last_segment_stays(tmp_path, log):
    first = checkpoint(tmp_path / "first", 1, {str(log): 2}, {str(log): 5}, {str(log): 8})
    second = checkpoint(tmp_path / "second", 0, {str(log): 8})
    gone = remove_passed(log, [first, second])
    assert [(one.begin, one.end) for one in gone] == [(0, 2), (2, 4)]  # the third is read in part
    assert content(log, 4) == b"c\nd\n"
    assert remove_passed(log, [first, second]) == []
    assert [one.begin for one in remove_passed(log, [second])] == [4]
    assert [one.begin for one in segments_of(str(log))] == [6]
    with SegmentLog(log, 1) as again:
        assert again.append(b"e\n") == 10  # places are what they were


def test_nothing_goes_while_a_reader_has_not_begun_or_no_one_is_named(tmp_path, log):
    read = checkpoint(tmp_path / "read", 0, {str(log): 8})
    fresh = checkpoint(tmp_path / "fresh", -1)
    other = checkpoint(tmp_path / "other", 0, {"/elsewhere": 8})
    assert passed(log, [read])
    assert not passed(log, [read, fresh])
    assert not passed(log, [read, other])
    assert not passed(log, [])


def test_a_folder_that_is_not_a_checkpoint_or_is_damaged_is_an_error(tmp_path, log):
    with pytest.raises(CheckpointError, match="is not the checkpoint of a query"):
        remove_passed(log, [tmp_path / "nowhere"])
    damaged = checkpoint(tmp_path / "damaged", 0, {str(log): 8})
    (damaged / "offsets" / "0").write_text("v1\n{")
    with pytest.raises(CheckpointError, match=r"cannot read .*offsets/0"):
        committed(damaged)
    (damaged / "offsets" / "0").write_text("v1\n{}\n0")
    with pytest.raises(CheckpointError, match="must have one source with many inputs, and has 0"):
        committed(damaged)
    assert content(log) == b"a\nb\nc\nd\n"


def test_a_reader_finds_what_it_needs_while_segments_before_it_are_removed(tmp_path):
    write(tmp_path, *[b"a line\n"] * 400, segment_bytes=1)
    *passed_by, last = segments_of(str(tmp_path))

    def removed() -> None:
        for one in passed_by:
            remove(one.path)

    remover = Thread(target=removed)
    remover.start()
    while remover.is_alive():
        assert between(str(tmp_path), last.begin, last.end) == [last]
    remover.join()
    assert segments_of(str(tmp_path)) == [last]
