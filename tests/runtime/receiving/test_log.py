"""A log is what was appended, each line once and in order, through kills of its writers."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.receiving.logs import check_all, content, write

from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.segments import END, between, end_of, segments_of
from skypane.types import CheckpointError, ConfigError

BLOCKS = st.lists(
    st.binary(max_size=9).map(lambda line: line.replace(b"\n", b".") + b"\n"), min_size=1, max_size=4
).map(b"".join)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), BLOCKS),
        # a kill in the middle of an append: so many bytes of it had been written, and none was acknowledged
        st.tuples(st.just("kill"), BLOCKS, st.integers(0, 40)),
        st.tuples(st.just("stop")),
    ),
    max_size=12,
)


@given(events=EVENTS, most=st.integers(1, 40))
def test_what_was_appended_is_there_once_over_kills_at_any_byte(events, most: int):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log, expected = SegmentLog(folder, most), b""
        for event in events:
            match event:
                case ("append", lines):
                    expected += lines
                    assert log.append(lines) == len(expected)
                case ("kill", lines, written):
                    log.close()
                    with Path(segments_of(name)[-1].path).open("ab") as file:
                        file.write(lines[:written])
                    seen = content(folder)
                    assert seen == expected  # a reader does not go past what is there for good
                    log = SegmentLog(folder, most)
                    expected += lines[:written][: lines[:written].rfind(b"\n") + 1]
                case _:
                    log.close()
                    log = SegmentLog(folder, most)
            assert content(folder) == expected
            assert log.end == len(expected)
        log.close()
        parts = segments_of(name)
        assert [one.end for one in parts[:-1]] == [one.begin for one in parts[1:]]
        assert all(Path(one.path).read_bytes()[-1:] in {b"", b"\n"} for one in parts)


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=12), cut=st.data())
def test_any_range_is_read_from_the_segments_that_hold_it(lengths, cut):
    blocks = [bytes([65 + at % 26]) * length + b"\n" for at, length in enumerate(lengths)]
    whole = b"".join(blocks)
    with tempfile.TemporaryDirectory() as name, SegmentLog(Path(name), 16) as log:
        for block in blocks:
            log.append(block)
        start = cut.draw(st.integers(0, len(whole)))
        assert content(Path(name), start) == whole[start:]


def test_a_second_receiver_is_refused_with_the_owner_of_the_folder(tmp_path):
    with SegmentLog(tmp_path) as log:
        with pytest.raises(ConfigError, match=rf"is locked by another receiver \(process {os.getpid()}\)"):
            SegmentLog(tmp_path)
        log.append(b"still mine\n")
    with SegmentLog(tmp_path) as log:
        assert log.append(b"now mine\n") == len(b"still mine\nnow mine\n")


@pytest.mark.parametrize(("failing", "room"), [("write", b""), ("write", b"sec"), ("fsync", b""), ("pwrite", b"")])
def test_what_the_disk_refuses_is_not_in_the_log_and_the_next_lines_are(
    tmp_path, monkeypatch, failing: str, room: bytes
):
    with SegmentLog(tmp_path) as log:
        log.append(b"first\n")
        real = getattr(os, failing)

        def full(*arguments: object) -> int:
            if room:
                real(arguments[0], room)  # a part of it had room
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, failing, full)
        with pytest.raises(OSError, match="No space left"):
            log.append(b"second\n")
        monkeypatch.undo()
        assert content(tmp_path) == b"first\n"
        log.append(b"third\n")
        check_all(tmp_path)
    check_all(tmp_path)
    with SegmentLog(tmp_path) as log:
        assert content(tmp_path) == b"first\nthird\n"


def test_a_full_disk_at_a_new_segment_leaves_a_log_that_continues(tmp_path, monkeypatch):
    with SegmentLog(tmp_path, 1) as log:
        log.append(b"first\n")
        monkeypatch.setattr(log, "_sync_folder", lambda: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            log.append(b"second\n")
        monkeypatch.undo()
        log.append(b"second\n")
        log.append(b"third\n")
    assert [Path(one.path).read_bytes() for one in segments_of(str(tmp_path))] == [b"first\n", b"second\n", b"third\n"]
    assert content(tmp_path) == b"first\nsecond\nthird\n"


def test_a_log_that_was_cut_behind_its_back_is_refused(tmp_path):
    write(tmp_path, b"first\nsecond\n")
    os.truncate(segments_of(str(tmp_path))[-1].path, 6)
    with pytest.raises(CheckpointError, match="ends at byte 6, but was durable up to 13"):
        SegmentLog(tmp_path)


def test_segments_that_were_removed_before_they_were_read_are_missed(tmp_path):
    write(tmp_path, b"a\n", b"b\n", b"c\n", segment_bytes=1)
    first, second, _ = segments_of(str(tmp_path))
    Path(second.path).unlink()
    with pytest.raises(CheckpointError, match="lacks its bytes from 2 on, the next bytes are at 4"):
        between(str(tmp_path), 0, 6)
    Path(first.path).unlink()
    with pytest.raises(CheckpointError, match="lacks its bytes from 0 on"):
        between(str(tmp_path), 0, 6)
    assert content(tmp_path, 4) == b"c\n"


def test_an_end_damaged_by_a_crash_is_ignored_until_a_receiver_writes_it_again(tmp_path):
    write(tmp_path, b"first\n")
    (tmp_path / END).write_bytes(b"0000000000000000000900000000000000000006\n\0\0")
    assert end_of(str(tmp_path)) is None
    SegmentLog(tmp_path).close()
    assert content(tmp_path) == b"first\n"


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "taken").touch()
    with pytest.raises(ConfigError, match=r"cannot write to .*taken: "):
        SegmentLog(tmp_path / "taken")
