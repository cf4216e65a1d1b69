"""The lines of an object: those of its text, cut anywhere, plain or compressed, whole or not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.runtime.compressed.packing import PACK
from tests.stores.memory import in_memory

from skypane.locations import Location
from skypane.runtime import growing_files
from skypane.runtime.compressed import compressed_file
from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.objects import object_text as texts
from skypane.runtime.objects.folder_listing import objects_of
from skypane.runtime.objects.object_bytes import ObjectBytes, ObjectLostError
from skypane.runtime.objects.object_text import ObjectText, object_text
from skypane.runtime.stores.object_client import client_of

PLACE = Location.of("s3://bucket/in")


def put(content: bytes) -> None:
    client_of(PLACE).put("in/a", content)


def opened(form: str | None, ahead: int) -> ObjectText:
    """Return the text of the object as in a process that has just started."""
    texts._texts.clear()
    (one,) = objects_of(PLACE)
    return object_text(PLACE.child("a"), one.size, one.stamp, FORMATS[form] if form else None, ahead=ahead)


def lines_of(text: ObjectText, start: int, end: int | None) -> list[bytes]:
    """Return the lines of a range, and the error of each that cannot be read."""
    found: list[bytes] = []
    for block in text.blocks(start, end):
        found += [block.error.encode()] if block.error else block.text.removesuffix(b"\n").split(b"\n")
    return found


@pytest.mark.long
@pytest.mark.parametrize("form", [None, *FORMATS])
@given(data=st.data())
def test_rows_are_the_lines_wherever_they_are_cut(form: str | None, data):
    """Also of a compressed object that is not complete: its one row says so. Each range is read by another process, too."""
    lines = data.draw(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"x")) | st.just(b"x" * 70_000),
                               min_size=1, max_size=30))  # fmt: skip
    text = b"\n".join(lines) + b"\n" * data.draw(st.integers(0, 1))
    assume(text)
    content, ahead = PACK[form](text) if form else text, data.draw(st.sampled_from([1, 50, 1 << 20]))
    cut = data.draw(st.integers(0, len(content) // 2)) if form else 0
    with in_memory():
        put(content[: len(content) - cut])
        whole = lines_of(opened(form, ahead), 0, None)
        planned, found, place = opened(form, ahead), list[bytes](), 0
        while True:
            most = data.draw(st.integers(1, 9))
            end, count = planned.rows_after(place, most)
            some = lines_of(opened(form, ahead), place, end)
            assert len(some) == count <= most
            found += some
            if end is None:
                break
            assert end > place
            place = end
    assert found == whole
    if cut:
        (row,) = found
        assert row.endswith(b"none of its text is read: it has not ended, although the file has")
    else:
        assert found == text.removesuffix(b"\n").split(b"\n")


@pytest.mark.parametrize("form", [None, "gzip"])
def test_a_last_line_of_any_length_needs_no_line_end(form: str | None, monkeypatch):
    """One that is longer than a block, as a document of JSON in one line, and one that is too long."""
    for module in (growing_files, compressed_file):
        monkeypatch.setattr(module, "CHUNK", 1_000)
        monkeypatch.setattr(module, "LONGEST", 200_000)
    for length in (5_000, 300_000):
        text = b"short\n" + b"x" * length
        with in_memory():
            put(PACK[form](text) if form else text)
            short, last = lines_of(opened(form, 1 << 17), 0, None)
        assert short == b"short"
        assert last == (b"x" * length if length < 200_000 else b"a line of 300,000 bytes is longer than 200,000")


def test_another_version_is_refused_and_a_missing_one_too():
    with in_memory():
        put(b"one\n")
        text = opened(None, 1)
        put(b"two two\n")
        with pytest.raises(ObjectLostError, match="was written again"):
            lines_of(text, 0, None)
        client_of(PLACE).delete("in/a")
        with pytest.raises(ObjectLostError, match="was removed"):
            lines_of(text, 0, None)


def test_a_shorter_version_that_has_no_such_range_is_another_one():
    with in_memory():
        put(b"x" * 100)
        (one,) = objects_of(PLACE)
        source = ObjectBytes(PLACE.child("a"), one.size, one.stamp, ahead=1)
        assert source.pread(3, 50) == b"xxx"
        put(b"x")
        with pytest.raises(ObjectLostError, match="was written again"):
            source.pread(3, 90)


@pytest.mark.parametrize("form", [None, *FORMATS])
def test_samples_are_lines_near_a_place_or_the_last_ones(form: str | None):
    text = b"".join(b"%06d\n" % n for n in range(5_000))
    with in_memory():
        put(PACK[form](text) if form else text)
        one = opened(form, 1 << 17)
        for near, first in ((0, 0), (7, 1), (10, 2), (20_000, 2_858)):
            start, end = one.sample(near, 3)
            assert lines_of(one, start, end) == [b"%06d" % n for n in range(first, first + 3)]
        if form:
            start, end = one.sample(1_000_000, 3)
            assert lines_of(one, start, end) == [b"004997", b"004998", b"004999"]
