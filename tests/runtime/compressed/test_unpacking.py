"""The text of a compressed file: that of its members, however it grows, and past what is damaged."""

from __future__ import annotations

import lzma
import random
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parameters import slow_but
from tests.runtime.compressed.packing import PACK, unpacked

from skypane.runtime.compressed import formats
from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.compressed.unpacking import BLOCK, MOST, Mark, Unpacking

EACH = pytest.mark.parametrize("form", slow_but(("gzip", "zstd"), FORMATS))


def noise(length: int, seed: int = 0) -> bytes:
    """Lines that do not compress well."""
    chance = random.Random(seed)
    return b"".join(b"%d\n" % chance.getrandbits(200) for _ in range(length // 60 + 1))[:length]


@EACH
@given(members=st.lists(st.binary(max_size=40), max_size=5), zeros=st.integers(0, 9))
def test_the_text_is_that_of_all_members(tmp_path_factory, form: str, members, zeros: int):
    path = Path(tmp_path_factory.getbasetemp()) / f"members-{form}"
    path.write_bytes(b"".join(PACK[form](text) + b"\0" * zeros for text in members))
    assert unpacked(path, form) == (b"".join(members), {})


@EACH
@given(data=st.data())
def test_a_file_has_one_text_however_it_grows(tmp_path_factory, form: str, data):
    """Also where it is damaged: what a reader makes of a part of it is the beginning of what it makes of all."""
    seed = data.draw(st.integers(0, 1 << 20))
    chance = random.Random(seed)
    members = [PACK[form](noise(chance.choice((0, 50, 3000)), seed + at)) for at in range(chance.randrange(1, 5))]
    for at, member in enumerate(members):
        fate = chance.random()
        if fate < 0.25:
            members[at] = member[: chance.randrange(len(member))]
        elif fate < 0.5:
            wrong = bytearray(member)
            wrong[chance.randrange(len(wrong))] ^= 1 << chance.randrange(8)
            members[at] = bytes(wrong)
    content = b"".join(members)
    path = Path(tmp_path_factory.getbasetemp()) / f"grows-{form}"
    path.write_bytes(content)
    whole, damages = unpacked(path, form)
    unpacking, text, seen = Unpacking(FORMATS[form]), b"", dict[int, str]()
    sizes = [*sorted(chance.randrange(len(content) + 1) for _ in range(chance.randrange(12))), len(content)]
    for size in sizes:
        path.write_bytes(content[:size])
        with path.open("rb") as file:
            text += b"".join(iter(lambda: unpacking.piece(file), b""))
        assert whole.startswith(text)
        seen |= unpacking.damages
    assert (text, seen) == (whole, damages)


@EACH
def test_the_text_continues_from_the_mark_of_a_member(tmp_path: Path, form: str):
    path = tmp_path / "a"
    members = [noise(200_000, 1), b"", noise(70_000, 2), b"end\n"]
    path.write_bytes(b"".join(map(PACK[form], members)))
    unpacking, marks = Unpacking(FORMATS[form]), set[Mark]()
    with path.open("rb") as file:
        while unpacking.piece(file):
            marks.add(unpacking.mark)
    marks.add(unpacking.mark)
    assert len(marks) >= 4
    for mark in marks:
        assert unpacked(path, form, mark) == (b"".join(members)[mark.text :], {})


@EACH
def test_a_member_that_is_not_complete_is_waited_for_and_what_it_has_is_there(tmp_path: Path, form: str):
    path, text = tmp_path / "a", noise(3_000_000)
    packed = PACK[form](text)
    path.write_bytes(packed[: len(packed) // 2])
    so_far, damages = unpacked(path, form)
    assert damages == {}
    assert text.startswith(so_far)
    assert len(so_far) > len(text) // 4
    path.write_bytes(packed)
    assert unpacked(path, form) == (text, {})


@EACH
def test_a_member_that_was_cut_off_costs_no_other_one(tmp_path: Path, form: str):
    """A writer that is killed, and appends a new member after its restart."""
    first, second = noise(300_000, 1), noise(200_000, 2)
    packed = PACK[form](first)
    path = tmp_path / "a"
    path.write_bytes(packed[: len(packed) // 2] + PACK[form](second))
    text, damages = unpacked(path, form)
    assert text.endswith(b"\n" + second)
    (place,) = damages
    assert place == len(text) - len(second) - 1
    # What follows in the file may decode to some bytes more, before the decoder finds that it is wrong.
    assert len(text) - len(second) >= len(first) // 4 or form == "bz2"
    assert f"{form} {FORMATS[form].member} at byte 0 of the file is damaged" in damages[place]


@EACH
def test_a_changed_bit_is_found_and_the_next_member_is_read(tmp_path: Path, form: str):
    first, second = noise(100_000, 1), noise(20_000, 2)
    packed = PACK[form](first)
    for at in (20, len(packed) // 2, len(packed) - 6):
        wrong = bytearray(packed)
        wrong[at] ^= 4
        path = tmp_path / "a"
        path.write_bytes(bytes(wrong) + PACK[form](second))
        text, damages = unpacked(path, form)
        assert text.endswith(b"\n" + second)
        assert len(damages) == 1


def test_another_format_is_damaged_and_waits_for_a_member(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"a,b\n" * 100_000)
    text, damages = unpacked(path, "gzip")
    assert text == b"\n"
    assert damages == {
        0: "gzip member at byte 0 of the file is damaged, its text ends here: these bytes begin no member of gzip"
    }
    with path.open("ab") as file:
        file.write(PACK["gzip"](b"c\n"))
    assert unpacked(path, "gzip")[0] == b"\nc\n"


@EACH
def test_a_bomb_ends_where_a_block_has_more_text_than_rows_ever_have(tmp_path: Path, form: str):
    """200 MB of zeros in 200 KB or less, and a good member after them."""
    path = tmp_path / "bomb"
    one = PACK[form](b"\0" * (200 << 20))
    path.write_bytes(one + PACK[form](b"good\n"))
    text, damages = unpacked(path, form)
    assert text.endswith(b"\ngood\n")
    assert list(damages) == [len(text) - 6]
    assert "decompression bomb" in damages[len(text) - 6]
    assert len(text) - 6 <= 2 * MOST


def test_a_member_that_needs_too_much_memory_is_damaged(tmp_path: Path, monkeypatch):
    """Zstandard: a frame of one byte that declares a window of 256 MiB; xz: a dictionary of 8 MiB where 1 may be."""
    path = tmp_path / "a"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x90\x09\x00\x00\n" + PACK["zstd"](b"good\n"))
    text, damages = unpacked(path, "zstd")
    assert text == b"\ngood\n"
    assert "memory" in damages[0]
    monkeypatch.setattr(formats, "_LARGEST_DICTIONARY", 1 << 20)
    path.write_bytes(PACK["xz"](b"large\n") + lzma.compress(b"good\n", preset=0))
    text, damages = unpacked(path, "xz")
    assert text == b"\ngood\n"
    assert "emory" in damages[0]


def test_text_that_repeats_itself_is_not_a_bomb(tmp_path: Path):
    path, text = tmp_path / "a", b"2026-01-01T00:00:00Z,21.5,3\n" * 4_000_000
    path.write_bytes(PACK["gzip"](text))
    assert len(text) > 100 * path.stat().st_size
    assert unpacked(path, "gzip") == (text, {})


def test_members_that_look_like_others_cost_a_bounded_time(tmp_path: Path):
    """Beginnings of members within members, none of which is one."""
    path = tmp_path / "a"
    path.write_bytes(b"\x1f\x8b\x08\x00" * (1 << 17))
    text, damages = unpacked(path, "gzip")
    assert text == b"\n" * len(damages)


def test_an_error_is_located_to_the_byte_whatever_the_pieces_are(tmp_path: Path):
    """zlib keeps the text before an error for itself: all lines before it must be there all the same."""
    lines = [b"%d\n" % n for n in range(60_000)]
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    first = packer.compress(b"".join(lines[:50_000])) + packer.flush(zlib.Z_FULL_FLUSH)
    rest = packer.compress(b"".join(lines[50_000:])) + packer.flush()
    wrong = b"\xff" + rest[1:]  # no block of deflate begins so
    path = tmp_path / "a"
    path.write_bytes(first + wrong)
    assert len(first) > BLOCK
    text, damages = unpacked(path, "gzip")
    assert text == b"".join(lines[:50_000]) + b"\n"
    assert list(damages) == [len(text) - 1]
