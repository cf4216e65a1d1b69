"""Unpack a growing compressed file member by member: the text of a member counts once it has ended and its checksum is right.

The text of a file is that of its whole members, one after the other. In the place of a damaged member is one line end that is
not in the file, and reading goes on with the next member. A member that has not ended is waited for, unless a whole one lies
behind it: then its writer was ended in the middle of it, and has begun again.

All of this depends on the bytes of the file alone, not on how far it had grown when it was read, so that the driver, its tasks
and later starts see the same text: whatever is behind a member that was cut off, it stays damaged.
"""

from __future__ import annotations

import os
from collections import deque
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
KEPT: Final = 32 << 20
"""Bytes of text that are kept until the member has ended; a longer member is decoded once to check it, and again for its text."""
_DEEPEST: Final = 3
"""Members behind each other that have not ended, at most, behind which a whole one is sought."""


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

    size     of a file that does not grow; None: it may
    packed   bytes of the file that are decoded or skipped
    text     bytes of the text that were returned up to there
    mark     where the present member begins, or the next one
    damages  byte of the text of each line end that is not in the file -> what is wrong there
    waits    whether the file has bytes of a member that has not ended
    """

    form: Compression
    mark: Mark = START
    size: int | None = None
    packed: int = field(init=False)
    text: int = field(init=False)
    damages: dict[int, str] = field(default_factory=dict)
    waits: bool = False
    _decoder: Decoder | None = None
    #: about how many bytes of memory the decoder takes
    _takes: int = 0
    #: whether the decoder checks the member, whose text is returned when it has ended
    _checks: bool = True
    #: text of the member that is checked, the last KEPT bytes; its length; and whether there was more
    _checked: deque[bytes] = field(default_factory=deque)
    _length: int = 0
    _is_long: bool = False
    #: bytes of text of the present block
    _of_block: int = 0
    #: text to return
    _left: deque[bytes] = field(default_factory=deque)
    #: the byte from which on the next member is sought, after a damaged one
    _search: int | None = None
    #: what follows the present member, which has not ended
    _behind: Unpacking | None = None
    _depth: int = 0

    def __post_init__(self) -> None:
        self.packed, self.text = self.mark

    @property
    def memory(self) -> int:
        """Bytes of memory that it takes, about."""
        behind = 0 if self._behind is None else self._behind.memory
        return self._takes + self._length + behind

    @property
    def known(self) -> int:
        """Bytes of the text that are known, also of what was not returned yet."""
        return self.text + sum(map(len, self._left))

    def piece(self, file: Packed) -> bytes:
        """Return the next text, at most PIECE bytes; nothing if the file has no whole member more now."""
        while not self._left:
            if not self._step(file):
                return b""
        text = self._left.popleft()
        self.text += len(text)
        return text

    def _step(self, file: Packed) -> bool:
        """Go on; return whether that was possible with what the file has now."""
        self.waits = False
        if self._decoder is not None:
            return self._decoded(file, self._decoder)
        return self._begun(file) if self._search is None else self._sought(file, self._search)

    def _begun(self, file: Packed) -> bool:
        """Begin a member. Zeros before it are padding, as tapes and xz have it."""
        head = _read(file, self.packed, PIECE)
        zeros = len(head) - len(head.lstrip(b"\0"))
        self.packed += zeros
        self.mark = Mark(self.packed, self.text)
        if zeros:
            return True
        if len(head) < self.form.head:
            return bool(head) and self._unended(file)
        if not begins(self.form, head):
            # The first bytes of a member may have completed the one before it, which was cut off: bzip2 has bits to spare.
            return self._damaged(f"these bytes begin no {self.form.member} of {self.form.name}", self.form.head)
        self._takes, self._decoder = self.form.memory(head), self.form.decoder()
        return True

    def _decoded(self, file: Packed, decoder: Decoder) -> bool:
        data = b""
        if decoder.needs_input and not (data := self._input(file)):
            return self._unended(file)
        try:
            text = decoder.decompress(data, PIECE)
        except self.form.errors() as error:
            return self._damaged(str(error))
        self.packed += len(data)
        self._of_block += len(text)
        if self._of_block > MOST:
            return self._damaged(
                f"more than {MOST:,} bytes of text in {BLOCK:,} bytes of the file, as a decompression bomb has"
            )
        if text:
            (self._checked if self._checks else self._left).append(text)
        self._length += len(text) if self._checks else 0
        while self._length > KEPT:
            self._length -= len(self._checked.popleft())
            self._is_long = True
        if decoder.eof:
            self._ended(decoder)
        return True

    def _input(self, file: Packed) -> bytes:
        """Return the next bytes of the member, none of the block after the present one."""
        at = self.packed - self.mark.packed
        if at % BLOCK == 0:
            self._of_block = 0
        return _read(file, self.packed, BLOCK - at % BLOCK)

    def _ended(self, decoder: Decoder) -> None:
        """End the member, whose checksum is right; one that was too long to be kept is decoded again."""
        if self._is_long:
            self._close()
            self.packed, self._decoder, self._checks = self.mark.packed, self.form.decoder(), False
        else:
            self._left.extend(self._checked)
            self.packed -= len(decoder.unused_data)
            self._close()

    def _close(self) -> None:
        self._decoder, self._behind, self._checks, self._length, self._is_long = None, None, True, 0, False
        self._checked.clear()

    def _unended(self, file: Packed) -> bool:
        """Wait for the rest of the present member, or leave it out if it will not come."""
        if self.size is not None:
            return self._damaged("it has not ended, although the file has")
        if self._is_followed(file):
            return self._damaged("it has not ended, and others follow it")
        self.waits = True
        return False

    def _is_followed(self, file: Packed) -> bool:
        """Return whether a whole member with text lies behind the present one, and not in its text, as if stored there."""
        if self._depth == _DEEPEST:
            return False
        if self._behind is None:
            self._behind = Unpacking(self.form, self.mark, _depth=self._depth + 1, _search=self.mark.packed + 1)
        while piece := self._behind.piece(file):
            (begin, at), end = self._behind.mark, self._behind.packed
            if (
                at == self._behind.text - len(piece)  # the first piece of the member
                and at not in self._behind.damages
                and _read(file, begin, min(end - begin, BLOCK)) not in b"".join(self._checked)
            ):
                return True
        return False

    def _damaged(self, why: str, back: int = 0) -> bool:
        """Leave out the present member, and seek the next one, from so many bytes before it on."""
        where = f"{self.form.name} {self.form.member} at byte {self.mark.packed:,} of the file"
        self.damages[self.text] = f"{where} is damaged, and none of its text is read: {shortened(why)}"
        self._search = max(self.mark.packed + 1 - back, 0)
        self._left.append(b"\n")
        self._close()
        return True

    def _sought(self, file: Packed, at: int) -> bool:
        """Find where the next member may begin, from `at` on."""
        data = _read(file, at, PIECE)
        found = self.form.starts.search(data)
        if found is None:
            self._search = at + max(len(data) - self.form.head + 1, 0)
            return len(data) == PIECE
        self.packed, self._search = at + found.start(), None
        return True  # _begun() finds it there


def _read(file: Packed, at: int, length: int) -> bytes:
    if isinstance(file, IOBase):  # a file of Python, which has a descriptor
        return os.pread(file.fileno(), length, at)
    return cast("RangedBytes", file).pread(length, at)
