"""What lies in a log is what was written there, or its reader gets an error."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import flipped
from tests.runtime.receiving.logs import check_all, write

from skypane.runtime.receiving import checksums
from skypane.runtime.receiving.checksums import CHECKED, beside, blocks_of, check, remove
from skypane.runtime.receiving.log import SegmentLog
from skypane.runtime.receiving.segments import segments_of
from skypane.types import CheckpointError


@given(lengths=st.lists(st.integers(0, 30), min_size=1, max_size=12), most=st.sampled_from([40, 1000]), data=st.data())
def test_each_flipped_bit_is_reported_by_its_readers_and_by_no_other(lengths, most: int, data):
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksums, "BLOCK", 30)
        folder = Path(name)
        for part in (lengths[: len(lengths) // 2], lengths[len(lengths) // 2 :]):
            write(folder, *(b"x" * length + b"\n" for length in part), segment_bytes=most)
        check_all(folder)
        one = data.draw(st.sampled_from([one for one in segments_of(name) if one.end > one.begin]))
        content = bytearray(Path(one.path).read_bytes())
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] ^= 1 << data.draw(st.integers(0, 7))
        Path(one.path).write_bytes(content)
        blocks = blocks_of(one.path)
        assert blocks is not None
        for block in blocks:
            if block.begin <= at < block.end:
                with pytest.raises(CheckpointError, match=f"is damaged after its byte {block.begin}"):
                    check(one.path, block.begin, block.end)
            else:
                check(one.path, block.begin, block.end)


@given(data=st.data())
def test_no_bit_of_the_checksums_flips_unseen(data):
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksums, "BLOCK", 30)
        write(Path(name), *[b"a line of text\n"] * 12, segment_bytes=100)
        path = beside(data.draw(st.sampled_from([one for one in segments_of(name) if one.end > one.begin])).path)
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, data.draw(st.integers(0, 8 * len(whole) - 1))))
        with pytest.raises(CheckpointError, match="is damaged after its byte"):
            check_all(Path(name))


def test_segments_without_checksums_are_read_and_get_them_where_they_grow(tmp_path):
    """As older versions wrote them."""
    write(tmp_path, b"first line\n", b"second\n", segment_bytes=10)
    for path in (*tmp_path.glob("*.sums"), tmp_path / CHECKED):
        path.unlink()
    check_all(tmp_path)
    write(tmp_path, b"third\n", segment_bytes=10)
    check_all(tmp_path)
    first, last = segments_of(str(tmp_path))
    assert blocks_of(first.path) is None
    assert [block.end for block in blocks_of(last.path) or []] == [len(b"second\nthird\n")]


@pytest.mark.parametrize("lost", [0, 1])
def test_checksums_that_are_gone_as_a_whole_are_missed(tmp_path, lost: int):
    write(tmp_path, b"first line\n", b"second\n", segment_bytes=10)
    segments = segments_of(str(tmp_path))
    beside(segments[lost].path).unlink()
    with pytest.raises(CheckpointError, match=rf"{segments[lost].begin:020d}\.sums, are missing; restore them"):
        check_all(tmp_path)
    check(segments[1 - lost].path, 0, 7)
    (tmp_path / CHECKED).unlink()
    check_all(tmp_path)  # as the error says


def test_a_segment_removed_during_its_reading_loses_no_checksums(tmp_path):
    write(tmp_path, b"first line\n", segment_bytes=10)
    (one,) = segments_of(str(tmp_path))
    remove(one.path)
    check(one.path, 0, 11)  # its next reader gets the error that it has gone


@pytest.mark.parametrize("cut", [0, 1, 43, 44, 60])
def test_checksums_that_a_power_cut_took_are_made_again(tmp_path, monkeypatch, cut: int):
    monkeypatch.setattr(checksums, "BLOCK", 8)
    write(tmp_path, b"1234567\n", b"abcdefg\n", b"x\n")
    (one,) = segments_of(str(tmp_path))
    os.truncate(beside(one.path), cut)
    with pytest.raises(CheckpointError, match="is damaged after its byte"):
        check_all(tmp_path)
    with SegmentLog(tmp_path) as log:
        check_all(tmp_path)
        log.append(b"y\n")
    check_all(tmp_path)
