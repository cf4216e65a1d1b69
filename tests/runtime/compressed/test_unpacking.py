"""The text of a compressed file: that of its members, however it grows, and past what is damaged."""

from __future__ import annotations

import lzma
import random
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parameters import slow_but
from tests.rows import flipped
from tests.runtime.compressed.packing import PACK, pieces, unpacked

from skypane.runtime.compressed import formats
from skypane.runtime.compressed.formats import FORMATS
from skypane.runtime.compressed.unpacking import Unpacking

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
    assert (text, seen.keys()) == (whole, damages.keys())


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
def test_a_member_that_is_not_complete_is_waited_for(form: str):
    text = noise(3_000_000)
    packed = PACK[form](text)
    assert unpacked(packed[: len(packed) // 2], form) == (b"", {})
    assert unpacked(packed[:-1], form) == (b"", {})
    assert unpacked(packed, form) == (text, {})


@EACH
@given(data=st.data())
def test_a_member_that_was_cut_off_costs_no_other_one(form: str, data):
    """A writer that is killed, and appends new members after its restart: of few lines or of many, once or again and again."""
    chance = random.Random(data.draw(st.integers(0, 1 << 20)))
    whole, content = b"", b""
    for at in range(4):
        text = noise(chance.choice((40, 3_000, 300_000)), at)
        packed = PACK[form](text)
        is_cut = chance.random() < 0.6
        whole += b"" if is_cut else text
        content += packed[: chance.randrange(1, len(packed))] if is_cut else packed
    last = noise(3_000, 4)
    text, damages = unpacked(content + PACK[form](last), form)
    assert bytes(byte for at, byte in enumerate(text) if at not in damages) == whole + last


@EACH
def test_a_member_that_may_be_stored_in_one_that_was_cut_off_is_read_when_more_has_come(form: str):
    first, short, last = random.Random(0).randbytes(3_000), b"short\n", noise(300_000)
    content = PACK[form](first)[:1_000] + PACK[form](short)
    assert unpacked(content, form, size=len(content))[0] == b"\n" + short
    assert unpacked(content + PACK[form](last), form)[0] == b"\n" + short + last


@EACH
@given(data=st.data())
def test_a_changed_bit_costs_its_member_alone(form: str, data):
    chance = random.Random(data.draw(st.integers(0, 1 << 20)))
    texts = [noise(chance.choice((40, 3_000, 100_000)), seed) for seed in range(3)]
    packed = [PACK[form](text) for text in texts]
    packed[1] = flipped(packed[1], chance.randrange(8 * len(packed[1])))
    text, damages = unpacked(b"".join(packed), form)
    if damages:  # a bit of a name or a time in the head changes nothing
        assert text == texts[0] + b"\n" * len(damages) + texts[2]
    else:
        assert text == b"".join(texts)


@EACH
def test_a_member_of_a_file_that_does_not_grow_is_damaged_if_it_has_not_ended(form: str):
    first, second = PACK[form](b"one\n"), PACK[form](noise(3_000))
    content = first + second[:-1]
    text, damages = unpacked(content, form, size=len(content))
    assert text == b"one\n\n"
    assert damages[4].startswith(f"{form} {FORMATS[form].member} at byte {len(first)} of the file is damaged")
    assert "it has not ended, although the file has" in damages[4]


@EACH
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_member_that_is_too_long_to_be_kept_is_decoded_again(form: str, beyond: int, monkeypatch):
    monkeypatch.setattr("skypane.runtime.compressed.unpacking.KEPT", 300_000)
    text = noise(300_000 + beyond)
    packed = PACK[form](text)
    assert unpacked(packed + packed, form) == (text + text, {})
    assert unpacked(flipped(packed, 8 * (len(packed) - 20)) + packed, form) == (b"\n" + text, ANY)


def test_another_format_is_damaged_and_waits_for_a_member():
    text, damages = unpacked(b"a,b\n" * 100_000, "gzip")
    assert text == b"\n"
    assert damages == {
        0: "gzip member at byte 0 of the file is damaged, and none of its text is read: these bytes begin no member of gzip"
    }
    assert unpacked(b"a,b\n" * 100_000 + PACK["gzip"](b"c\n"), "gzip")[0] == b"\nc\n"


@EACH
def test_a_bomb_ends_where_a_block_has_more_text_than_rows_ever_have(form: str):
    """200 MB of zeros in 200 KB or less, and a good member after them."""
    text, damages = unpacked(PACK[form](b"\0" * (200 << 20)) + PACK[form](b"good\n"), form)
    assert text == b"\ngood\n"
    assert "decompression bomb" in damages[0]


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


@EACH
def test_a_member_that_is_stored_in_the_text_of_another_is_not_one_of_the_file(form: str):
    """Text that does not compress is stored as it is, and the other member may not have ended when it is read."""
    noisy = random.Random(0).randbytes(3_000)
    text = noisy + PACK[form](b"hidden\n") + noisy + b"\n"
    packed = PACK[form](text)
    assert unpacked(packed, form) == (text, {})
    unpacking = Unpacking(FORMATS[form])
    for size in range(0, len(packed), 100):
        assert list(pieces(unpacking, packed[:size])) == []
    assert b"".join(pieces(unpacking, packed)) == text


def test_a_member_whose_first_byte_completes_the_one_before_it_is_read():
    """The last bits of a stream of bzip2 may have any value, so the first byte of another one may end it."""
    first, second = b"5\n", b"other\n"
    packed = PACK["bz2"](first)
    content = packed[:-1] + PACK["bz2"](second)
    text, damages = unpacked(content, "bz2")
    assert (text, [*damages]) == (first + b"\n" + second, [len(first)])


def test_a_frame_is_checked_in_the_same_way_however_it_grows():
    """Zstandard compares the length of a frame in one piece with the length in its head, but not of one in pieces."""
    frame = b"\x28\xb5\x2f\xfd\x24\x10\x01\x00\x00\x99\xe9\xd8\x51"  # an empty text, said to have 16 bytes
    grown = Unpacking(FORMATS["zstd"])
    for size in range(len(frame)):
        assert list(pieces(grown, frame[:size])) == []
    assert (b"".join(pieces(grown, frame)), grown.damages) == unpacked(frame, "zstd")
