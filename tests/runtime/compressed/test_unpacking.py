"""The text of a compressed file: that of its members, however it grows, and past what is damaged."""

from __future__ import annotations

import lzma
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parameters import slow_but
from tests.rows import flipped
from tests.runtime.compressed.packing import PACK, pieces, unpacked

from skypane.runtime.compressed import formats
from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.compressed.unpacking import BLOCK, MOST, Unpacking

EACH = pytest.mark.parametrize("form", slow_but(("gzip", "zstd"), FORMATS))


def noise(length: int, seed: int = 0) -> bytes:
    """Lines that do not compress well."""
    chance = random.Random(seed)
    return b"".join(b"%d\n" % chance.getrandbits(200) for _ in range(length // 60 + 1))[:length]


@EACH
@given(members=st.lists(st.binary(max_size=40), max_size=5), zeros=st.integers(0, 9))
def test_the_text_is_that_of_all_members(form: str, members, zeros: int):
    content = b"".join(PACK[form](text) + b"\0" * zeros for text in members)
    assert unpacked(content, form) == (b"".join(members), {})


@EACH
@given(data=st.data())
def test_a_file_has_one_text_however_it_grows(form: str, data):
    """Also where it is damaged: what a reader makes of a part of it is the beginning of what it makes of all."""
    seed = data.draw(st.integers(0, 1 << 20))
    chance = random.Random(seed)
    members = [PACK[form](noise(chance.choice((0, 50, 3000)), seed + at)) for at in range(chance.randrange(1, 5))]
    for at, member in enumerate(members):
        fate = chance.random()
        if fate < 0.25:
            members[at] = member[: chance.randrange(len(member))]
        elif fate < 0.5:
            members[at] = flipped(member, chance.randrange(8 * len(member)))
    content = b"".join(members)
    whole, damages = unpacked(content, form)
    unpacking, text, seen = Unpacking(FORMATS[form]), b"", dict[int, str]()
    sizes = [*sorted(chance.randrange(len(content) + 1) for _ in range(chance.randrange(12))), len(content)]
    for size in sizes:
        text += b"".join(pieces(unpacking, content[:size]))
        assert whole.startswith(text)
        seen |= unpacking.damages
    assert (text, seen) == (whole, damages)


@EACH
def test_the_text_continues_from_the_mark_of_a_member(form: str):
    members = [noise(200_000, 1), b"", noise(70_000, 2), b"end\n"]
    content = b"".join(map(PACK[form], members))
    unpacking = Unpacking(FORMATS[form])
    marks = {*(unpacking.mark for _ in pieces(unpacking, content)), unpacking.mark}
    assert len(marks) >= 4
    for mark in marks:
        assert unpacked(content, form, mark) == (b"".join(members)[mark.text :], {})


@EACH
def test_a_member_that_is_not_complete_is_waited_for_and_what_it_has_is_there(form: str):
    text = noise(3_000_000)
    packed = PACK[form](text)
    so_far, damages = unpacked(packed[: len(packed) // 2], form)
    assert damages == {}
    assert text.startswith(so_far)
    assert len(so_far) > len(text) // 4
    assert unpacked(packed, form) == (text, {})


@EACH
def test_a_member_that_was_cut_off_costs_no_other_one(form: str):
    """A writer that is killed, and appends a new member after its restart."""
    first, second = noise(300_000, 1), noise(200_000, 2)
    packed = PACK[form](first)
    text, damages = unpacked(packed[: len(packed) // 2] + PACK[form](second), form)
    assert text.endswith(b"\n" + second)
    (place,) = damages
    assert place == len(text) - len(second) - 1
    # What follows in the file may decode to some bytes more, before the decoder finds that it is wrong.
    assert len(text) - len(second) >= len(first) // 4 or form == "bz2"
    assert f"{form} {FORMATS[form].member} at byte 0 of the file is damaged" in damages[place]


@EACH
def test_a_changed_bit_is_found_and_the_next_member_is_read(form: str):
    first, second = noise(100_000, 1), noise(20_000, 2)
    packed = PACK[form](first)
    for at in (20, len(packed) // 2, len(packed) - 6):
        text, damages = unpacked(flipped(packed, 8 * at + 2) + PACK[form](second), form)
        assert text.endswith(b"\n" + second)
        assert len(damages) == 1


def test_another_format_is_damaged_and_waits_for_a_member():
    text, damages = unpacked(b"a,b\n" * 100_000, "gzip")
    assert text == b"\n"
    assert damages == {
        0: "gzip member at byte 0 of the file is damaged, its text ends here: these bytes begin no member of gzip"
    }
    assert unpacked(b"a,b\n" * 100_000 + PACK["gzip"](b"c\n"), "gzip")[0] == b"\nc\n"


@EACH
def test_a_bomb_ends_where_a_block_has_more_text_than_rows_ever_have(form: str):
    """200 MB of zeros in 200 KB or less, and a good member after them."""
    text, damages = unpacked(PACK[form](b"\0" * (200 << 20)) + PACK[form](b"good\n"), form)
    assert text.endswith(b"\ngood\n")
    assert list(damages) == [len(text) - 6]
    assert "decompression bomb" in damages[len(text) - 6]
    assert len(text) - 6 <= 2 * MOST


def test_a_member_that_needs_too_much_memory_is_damaged(monkeypatch):
    """Zstandard: a frame of one byte that declares a window of 256 MiB; xz: a dictionary of 8 MiB where 1 may be."""
    text, damages = unpacked(b"\x28\xb5\x2f\xfd\x00\x90\x09\x00\x00\n" + PACK["zstd"](b"good\n"), "zstd")
    assert text == b"\ngood\n"
    assert "memory" in damages[0]
    monkeypatch.setattr(formats, "_LARGEST_DICTIONARY", 1 << 20)
    text, damages = unpacked(PACK["xz"](b"large\n") + lzma.compress(b"good\n", preset=0), "xz")
    assert text == b"\ngood\n"
    assert "emory" in damages[0]


def test_text_that_repeats_itself_is_not_a_bomb():
    text = b"2026-01-01T00:00:00Z,21.5,3\n" * 4_000_000
    packed = PACK["gzip"](text)
    assert len(text) > 100 * len(packed)
    assert unpacked(packed, "gzip") == (text, {})


def test_members_that_look_like_others_cost_a_bounded_time():
    """Beginnings of members within members, none of which is one."""
    text, damages = unpacked(b"\x1f\x8b\x08\x00" * (1 << 17), "gzip")
    assert text == b"\n" * len(damages)


def test_an_error_is_located_to_the_byte_whatever_the_pieces_are():
    """zlib keeps the text before an error for itself: all lines before it must be there all the same."""
    lines = [b"%d\n" % n for n in range(60_000)]
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    first = packer.compress(b"".join(lines[:50_000])) + packer.flush(zlib.Z_FULL_FLUSH)
    rest = packer.compress(b"".join(lines[50_000:])) + packer.flush()
    wrong = b"\xff" + rest[1:]  # no block of deflate begins so
    assert len(first) > BLOCK
    text, damages = unpacked(first + wrong, "gzip")
    assert text == b"".join(lines[:50_000]) + b"\n"
    assert list(damages) == [len(text) - 1]
