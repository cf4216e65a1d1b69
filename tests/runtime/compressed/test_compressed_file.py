"""The lines of a compressed file are those of the plain file, at the same offsets; only the price is another."""

from __future__ import annotations

import lzma
import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.runtime.compressed.packing import PACK
from tests.runtime.compressed.test_unpacking import EACH, noise

from skypane.runtime.compressed import text_window
from skypane.runtime.compressed.compressed_file import CompressedFile
from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.compressed.text_window import KEPT
from skypane.runtime.compressed.unpacking import Mark, Unpacking
from skypane.runtime.growing_files import LONGEST, GrowingFile, LineBlock


@pytest.fixture(autouse=True)
def _no_windows():
    text_window._windows.clear()


def written(folder: Path, text: bytes, form: str, chance: random.Random) -> tuple[CompressedFile, GrowingFile]:
    """Write a text plain, and in members of any length, each as the first file of its name."""
    text_window._windows.clear()
    folder.mkdir(exist_ok=True)
    (folder / "plain").write_bytes(text)
    cuts = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(4)))
    parts = [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]
    return packed_in(folder / "packed", form, *parts), GrowingFile(str(folder / "plain"))


def lines_of(file: CompressedFile, start: int, end: int) -> bytes:
    blocks = list(file.blocks(start, end))
    assert all(one.end == after.start for one, after in pairwise(blocks))
    return b"".join(one.text for one in blocks)


def packed_in(path: Path, form: str, *members: bytes) -> CompressedFile:
    """Write texts into a file, each as a member."""
    path.write_bytes(b"".join(map(PACK[form], members)))
    return CompressedFile(str(path), FORMATS[form])


@EACH
@given(data=st.data())
def test_lines_lie_where_they_do_in_the_plain_file(tmp_path_factory, form: str, data):
    chance = random.Random(data.draw(st.integers(0, 1 << 20)))
    text = noise(chance.choice((0, 10, 5_000, 900_000)), chance.randrange(9)) + chance.choice((b"", b"unfinished"))
    packed, plain = written(Path(tmp_path_factory.getbasetemp()) / f"lines-{form}", text, form, chance)
    size = len(text)
    for _ in range(8):
        start = plain.complete(0, chance.randrange(size + 1))
        lines = chance.choice((1, 3, 1000, 10**6))
        end = chance.choice((None, chance.randrange(start, size + 1)))
        assert packed.after(start, lines, end) == plain.after(start, lines, end)
        assert packed.complete(start, end) == plain.complete(start, size if end is None else end)
        assert packed.line_length(start) == plain.line_length(start)
        near = chance.randrange(size + 1)
        begin, stop = packed.sample(near, 16, 0)
        assert (begin, stop) in ((near, near), plain.sample(near, 16, size))
        stop = plain.after(start, lines)[0]
        assert lines_of(packed, start, stop) == text[start:stop]
        assert packed.first_line().text == plain.first_line().text
        length, exact = packed.length(start) or (0, True)
        assert length == size or not exact


def test_samples_are_found_ahead_of_the_rows_of_a_batch(tmp_path: Path):
    packed, plain = written(tmp_path, noise(3 * KEPT), "gzip", random.Random(0))
    packed.length(0)
    for near in (0, KEPT // 4, KEPT, 2 * KEPT, 2 * KEPT + 10):
        assert packed.sample(near, 16, 0) == plain.sample(near, 16, 3 * KEPT)
    assert packed.after(0, 1) == plain.after(0, 1)
    assert packed.sample(100 << 20, 16, 0) == (100 << 20, 100 << 20)


def test_lines_that_follow_each_other_are_unpacked_once(tmp_path: Path, monkeypatch):
    """In batches, in the planner and in a task, with samples ahead."""
    text = noise(4_000_000)
    packed, start = packed_in(tmp_path / "a", "gzip", text), 0
    unpacked = dict.fromkeys(("plan", "scout", "rows"), 0)
    count = Unpacking.piece

    def counted(self, file):
        found = count(self, file)
        (role,) = [role for (_, role), one in text_window._windows.items() if one.unpacking is self]
        unpacked[role] += len(found)
        return found

    monkeypatch.setattr(Unpacking, "piece", counted)
    for _ in range(100):
        packed.length(start)
        packed.line_length(start)
        packed.sample(start + 200_000, 16, start)
        end, lines = packed.after(start, 1000)
        assert lines_of(packed, start, end) == text[start:end]
        start = end
        if not lines:
            break
    assert start == len(text) // 60 * 60 or start > len(text) - 100
    assert all(one <= len(text) for one in unpacked.values())


def test_a_restart_begins_at_the_mark_and_a_file_that_was_read_is_not_opened_again(tmp_path: Path, monkeypatch):
    texts = [noise(400_000, seed) for seed in range(5)]
    path = tmp_path / "a"
    packed, whole = packed_in(path, "gzip", *texts), b"".join(texts)
    place = packed.complete(0, 1_500_000)
    marked = packed.mark_at(place)
    assert marked.text == 1_200_000
    end = packed.complete(place, None)
    last = packed.mark_at(len(whole))
    assert last == Mark(path.stat().st_size, len(whole))
    text_window._windows.clear()
    after = CompressedFile(str(path), FORMATS["gzip"], marked)
    assert lines_of(after, place, end) == whole[place:end]
    assert text_window._windows[str(path), "rows"].marks[0] == marked

    monkeypatch.setattr(Unpacking, "piece", lambda *_: pytest.fail("unpacked again"))
    done = CompressedFile(str(path), FORMATS["gzip"], last)
    assert done.length(len(whole)) == (len(whole), True)


def test_another_file_under_the_name_is_read_by_itself(tmp_path: Path):
    """A file that is written again with more lines, as a rotation that compresses does: a mark of the old one is not used."""
    path, first, more = tmp_path / "a", noise(200_000, 1), noise(300_000, 2)
    packed = packed_in(path, "gzip", first, b"x\n")
    place = packed.complete(0, None)
    marked = packed.mark_at(place)
    packed_in(tmp_path / "b", "gzip", first + b"x\n" + more)
    (tmp_path / "b").rename(path)
    for one in (packed, CompressedFile(str(path), FORMATS["gzip"], marked)):
        length, _ = one.length(place) or (0, False)
        assert length >= place
        end = one.complete(place, None)
        assert lines_of(one, place, end) == (first + b"x\n" + more)[place:end]
    path.write_bytes(PACK["gzip"](first[:1000]))
    assert packed.length(place) == (1000, True)


@EACH
@pytest.mark.parametrize("read", [100_000, 300_000])
def test_a_file_that_is_written_again_in_its_place_with_more_text_is_continued_at_its_offset(
    tmp_path: Path, form: str, read: int
):
    """By `gzip -c log > log.gz`, which keeps the inode; the process that has read it goes on as another one does."""
    path, text = tmp_path / "a", noise(800_000)
    packed = packed_in(path, form, text[:300_000])
    place = packed.complete(0, read)
    assert lines_of(packed, 0, place) == text[:place]
    path.write_bytes(PACK[form](text))
    end = packed.complete(place, None)
    assert end == text.rfind(b"\n") + 1
    assert lines_of(packed, place, end) == text[place:end]


def test_a_file_whose_format_is_corrected_is_read_in_that_one(tmp_path: Path):
    packed_in(tmp_path / "a", "gzip", b"one\n")
    assert CompressedFile(str(tmp_path / "a"), FORMATS["xz"]).after(0, 1) == (1, 1)
    assert CompressedFile(str(tmp_path / "a"), FORMATS["gzip"]).after(0, 1) == (4, 1)


def blocks_as_in_plain(folder: Path, *members: bytes) -> list[LineBlock]:
    """Return the blocks of a compressed file, whose lines and errors are those of the plain one."""
    text = b"".join(members)
    (folder / "plain").write_bytes(text)
    plain = list(GrowingFile(str(folder / "plain")).blocks(0, len(text)))
    blocks = list(packed_in(folder / "a", "zstd", *members).blocks(0, len(text)))
    assert [one for one in blocks if one.error] == [one for one in plain if one.error]
    assert b"".join(one.text for one in blocks if not one.error) == b"".join(one.text for one in plain if not one.error)
    return blocks


@pytest.mark.long
@pytest.mark.parametrize("beyond", [0, 1])
def test_the_longest_line_is_the_same_as_in_a_plain_file(tmp_path: Path, beyond: int):
    text = b"a" * (LONGEST - 1 + beyond) + b"\nb\n"
    blocks = blocks_as_in_plain(tmp_path, text[: LONGEST // 2], text[LONGEST // 2 :])
    assert bool(blocks[0].error) == (beyond > 0)


@pytest.mark.parametrize("long", [5_000_000, LONGEST + 5_000_000])
def test_a_line_that_is_too_long_is_reported_by_its_beginning(tmp_path: Path, long: int):
    blocks = blocks_as_in_plain(tmp_path, b"first\n" + noise(long).replace(b"\n", b"-") + b"\nlast\n")
    assert any(one.error for one in blocks) == (long > LONGEST)


def test_damage_is_a_separate_line_with_what_it_has_cut_off(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(PACK["gzip"](b"one\ntw") + b"no gzip" + PACK["gzip"](b"three\n"))
    packed = CompressedFile(str(path), FORMATS["gzip"])
    end = packed.complete(0, None)
    assert end == 13
    first, damaged, last = packed.blocks(0, end)
    assert (first.text, first.error, last.text, last.error) == (b"one\n", "", b"three\n", "")
    assert (damaged.start, damaged.end, damaged.text) == (4, 7, b"tw")
    assert "begin no member of gzip" in damaged.error


@pytest.mark.long
def test_the_first_line_after_damage_is_reported_by_its_beginning_if_it_is_too_long(tmp_path: Path):
    path, text = tmp_path / "a", b"a" * (LONGEST + 70_000) + b"\n"
    path.write_bytes(b"not gzip" + PACK["gzip"](text[: LONGEST // 2]) + PACK["gzip"](text[LONGEST // 2 :]))
    first = CompressedFile(str(path), FORMATS["gzip"]).first_line()
    assert (first.start, first.end) == (1, 1 + len(text))
    assert first.text


def _long(text: bytes) -> bytes:
    """Return a frame with a window of 64 MiB, as of `zstd --long=26`."""
    parameters = zstandard.ZstdCompressionParameters(window_log=26)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(text) + packer.flush()


@pytest.mark.parametrize(("form", "pack"), [("zstd", _long), ("xz", partial(lzma.compress, preset=9))])
def test_windows_are_counted_with_the_memory_of_their_decoders(
    tmp_path: Path, form: str, pack: Callable[[bytes], bytes]
):
    """A dictionary of 64 MiB, as `xz -9` has: three of them fit."""
    for name in "abcdef":
        (tmp_path / name).write_bytes(pack(b"a\nb\n"))
        assert CompressedFile(str(tmp_path / name), FORMATS[form]).after(0, 1) == (2, 1)
    text_window._close_unused()
    assert [Path(path).name for path, _ in text_window._windows] == ["d", "e", "f"]


def test_windows_that_were_not_used_for_longest_are_closed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(text_window, "_MEMORY", 3 << 20)
    for name in "abcd":
        assert packed_in(tmp_path / name, "gzip", b"a\nb\n").after(0, 1) == (2, 1)
    assert [Path(path).name for path, _ in text_window._windows] == ["c", "d"]
