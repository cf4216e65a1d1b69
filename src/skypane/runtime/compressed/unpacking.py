"""Unpack a growing compressed file piece by piece, member by member, and go on after damaged members.

The text of a file is that of its members, one after the other, as `zcat` prints it. Where a member is damaged, its text
up to there counts, and a line end follows that is not in the file: it ends a line that would else continue in the next
member. Reading goes on with the next member that decodes. A member that is not complete yet is waited for.

All of this depends on the bytes of the file alone, not on how far it had grown when it was read, so that the driver,
its tasks and later starts see the same text. For this, an error is located by decoding the block of bytes where it
occurs again, byte by byte; and members are sought from places that follow from the number of that block.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from io import IOBase
from typing import BinaryIO, Final, NamedTuple, Protocol, TypeAlias, cast

from skypane.naming import shortened
from skypane.runtime.compressed.formats import Compression, Decoder, begins

PIECE: Final = 1 << 16
"""Bytes of text that are returned at a time, at most."""
BLOCK: Final = 1 << 16
"""Bytes of a member that are decoded at a time; the first block begins where the member does."""
MOST: Final = 1_000 * BLOCK
"""Bytes of text of one block beyond which a member is taken for a decompression bomb."""
_BACK: Final = 3 * BLOCK
"""Bytes before the block of an error from which on the next member is sought: a member that was cut off is decoded on
into the next one before its decoder finds that something is wrong."""
_TRIAL: Final = 1 << 14
"""Bytes that must decode to show that a member begins where its first bytes are found."""


class RangedBytes(Protocol):
    """The bytes of a file that has no descriptor."""

    def pread(self, length: int, at: int) -> bytes:
        """Return `length` bytes from a place on, fewer at the end."""


Packed: TypeAlias = "BinaryIO | RangedBytes"


class Mark(NamedTuple):
    """Where a member begins: at a byte of the file, and at a byte of the text."""

    packed: int
    text: int


START: Final = Mark(0, 0)


@dataclass
class Unpacking:
    """The state of unpacking a file from a mark on.

    packed   bytes of the file that are decoded or skipped
    text     bytes of the text up to there
    mark     where the present member begins, or the next one
    damages  byte of the text of each line end that is not in the file -> what is wrong there
    memory   bytes of memory that the decoder takes, about
    """

    form: Compression
    mark: Mark = START
    packed: int = field(init=False)
    text: int = field(init=False)
    damages: dict[int, str] = field(default_factory=dict)
    memory: int = 0
    _decoder: Decoder | None = None
    #: the byte from which on the next member is sought, after a damaged one
    _search: int | None = None
    #: bytes of text of the present block
    _of_block: int = 0
    #: the block, from its beginning in the member, in which the decoder has failed: it is decoded byte by byte
    _careful: int | None = None
    #: bytes of text that were returned before the decoder failed
    _again: int = 0
    #: what is wrong with the member, once the text before it is returned
    _wrong: str = ""

    def __post_init__(self) -> None:
        self.packed, self.text = self.mark

    def piece(self, file: Packed) -> bytes:
        """Return the next text, at most PIECE bytes; nothing if the file has no more now."""
        while (text := self._step(file)) is None:
            pass
        self.text += len(text)
        return text

    def unfinished(self, size: int) -> str:
        """Return what is wrong with a file of `size` bytes that ends here and does not grow; else an empty text.

        All text must have been returned.
        """
        if self._decoder is None and (self._search is not None or self.packed >= size):
            return ""
        where = f"{self.form.name} {self.form.member} at byte {self.mark.packed:,} of the file"
        return f"{where} is not complete, although the file is: its text ends here"

    def _step(self, file: Packed) -> bytes | None:
        """Return the next text, b"" if there is no more now, or None after a step that has none."""
        if self._wrong:
            return self._damaged(self._wrong)
        if self._search is not None:
            return self._sought(file, self._search)
        return self._begun(file) if self._decoder is None else self._decoded(file, self._decoder)

    def _begun(self, file: Packed) -> bytes | None:
        """Begin a member. Zeros before it are padding, as tapes and xz have it."""
        head = _read(file, self.packed, PIECE)
        zeros = len(head) - len(head.lstrip(b"\0"))
        self.packed += zeros
        self.mark = Mark(self.packed, self.text)
        if zeros:
            return None
        if len(head) < self.form.head:
            return b""
        if not begins(self.form, head):
            return self._damaged(f"these bytes begin no {self.form.member} of {self.form.name}")
        self.memory = self.form.memory(head)
        self._open()
        return None

    def _open(self) -> None:
        self._decoder, self._of_block = self.form.decoder(), 0

    def _decoded(self, file: Packed, decoder: Decoder) -> bytes | None:
        data = b""
        if decoder.needs_input and not (data := self._input(file)):
            return b""
        try:
            text = decoder.decompress(data, PIECE)
        except self.form.errors() as error:
            return self._failed(len(data), str(error))
        self.packed += len(data)
        text = self._limited(text)
        text, self._again = text[self._again :], max(self._again - len(text), 0)
        if decoder.eof and not self._wrong:
            self.packed -= len(decoder.unused_data)
            self.mark = Mark(self.packed, self.text + len(text))
            self._decoder, self._careful = None, None
        return text or None

    def _input(self, file: Packed) -> bytes:
        """Return the next bytes of the member, none of the block after the present one."""
        at = self.packed - self.mark.packed
        if at % BLOCK == 0:
            self._of_block = 0
        careful = self._careful is not None and at >= self._careful
        return _read(file, self.packed, 1 if careful else BLOCK - at % BLOCK)

    def _limited(self, text: bytes) -> bytes:
        """Return the part of a text that a block may have."""
        self._of_block += len(text)
        if (beyond := self._of_block - MOST) <= 0:
            return text
        self._wrong = f"more than {MOST:,} bytes of text in {BLOCK:,} bytes of the file, as a decompression bomb has"
        return text[: len(text) - beyond]

    def _failed(self, length: int, error: str) -> bytes | None:
        """Decode the member again up to its error: the decoder has kept the text before it for itself."""
        if self._careful is not None:
            return self._damaged(error)
        self._careful, self._again = self._block(length), self.text - self.mark.text
        self.packed = self.mark.packed
        self._open()
        return None

    def _block(self, length: int = 0) -> int:
        """Return where the block begins in the member whose last byte is `length` bytes ahead."""
        return max(self.packed - self.mark.packed + length - 1, 0) // BLOCK * BLOCK

    def _damaged(self, why: str) -> bytes:
        """End the present member here, and seek the next one."""
        where = f"{self.form.name} {self.form.member} at byte {self.mark.packed:,} of the file"
        self.damages[self.text] = f"{where} is damaged, its text ends here: {shortened(why)}"
        self._search = max(self.mark.packed + 1, self.mark.packed + self._block() - _BACK)
        self._decoder, self._careful, self._again, self._wrong = None, None, 0, ""
        return b"\n"

    def _sought(self, file: Packed, at: int) -> bytes | None:
        """Find the next member that decodes from `at` on."""
        data = _read(file, at, PIECE)
        found = self.form.starts.search(data)
        if found is None:
            self._search = at + max(len(data) - self.form.head + 1, 0)
            return None if len(data) == PIECE else b""
        self._search = at + found.start()
        head = _read(file, self._search, _TRIAL)
        good = self._tried(head)
        if good is None:
            return b""
        if good:
            self.packed, self._search = self._search, None
            self.mark, self.memory = Mark(self.packed, self.text), self.form.memory(head)
            self._open()
        else:
            self._search += 1
        return None

    def _tried(self, data: bytes) -> bool | None:
        """Return whether a member begins with these bytes; None if there are too few of them so far."""
        decoder, length, short = self.form.decoder(), 0, len(data) < _TRIAL
        try:
            while length <= MOST and (data or not decoder.needs_input) and not decoder.eof:
                length += len(decoder.decompress(data, PIECE))
                data = b""
        except self.form.errors():
            return False
        return None if short and not decoder.eof else True


def _read(file: Packed, at: int, length: int) -> bytes:
    if isinstance(file, IOBase):  # a file of Python, which has a descriptor
        return os.pread(file.fileno(), length, at)
    return cast("RangedBytes", file).pread(length, at)
