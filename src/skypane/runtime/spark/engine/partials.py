"""Files of partials: immutable, named by attempt, each partial with a checksum in the reference to it.

A file is a row of Arrow streams, one a partial, each whole in itself, so that a reader maps just those that it needs.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Self

import pyarrow as pa

from skypane.runtime.gather import decoded, encoded
from skypane.runtime.headroom import SHORTER_WINDOW, Headroom
from skypane.runtime.spark.store import Store
from skypane.types import CheckpointError
from skypane.wording import count, size

PARTIALS = "partials"

_MERGING = 3
"""What a partial takes, as a multiple of its bytes: as it is read, and as what is made of it."""

_NAME = re.compile(r"\d{12}-\d{5}-[0-9a-f]{32}\.arrow")


@dataclass(frozen=True, slots=True)
class PartialRef:
    """One partial in a file of the store: bytes [start, start + size), with the checksum `crc`; it has `rows` rows."""

    file: str
    start: int
    size: int
    crc: int
    rows: int

    def to_json(self) -> list[Any]:
        return list(astuple(self))

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Return the reference; raise CheckpointError unless it names a file as attempt_name() does, and nothing else.

        The file will be deleted one day: it must be one of the engine's own.
        """
        try:
            ref = cls(*value)
            numbers = (ref.start, ref.size, ref.crc, ref.rows)
            sound = _NAME.fullmatch(ref.file) and all(type(number) is int and number >= 0 for number in numbers)
        except TypeError:
            sound = None
        if not sound:
            raise CheckpointError(f"{value!r} is no reference to a partial: the manifest has been changed by hand")
        return ref


def attempt_name(batch_id: int, task: int) -> str:
    """Return a file name for one attempt of one task: no other attempt has it, now or after a restart."""
    return f"{batch_id:012d}-{task:05d}-{uuid.uuid4().hex}.arrow"


def write(store: Store, name: str, partials: Sequence[pa.Table]) -> list[PartialRef]:
    """Write a file of partials under a name that no other attempt uses; whoever commits one synchronises it."""
    refs, start = [], 0
    with store.open_output(name) as stream:
        for partial in partials:
            data = encoded(partial)
            stream.write(data)
            refs.append(PartialRef(name, start, data.size, zlib.crc32(data), partial.num_rows))
            start += data.size
    return refs


class PartialReader:
    """Reads partials, each file opened once; raises CheckpointError where one is not as it was written.

    Raises MemoryLimitError where there is not enough memory for what is made of them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._files: dict[str, pa.NativeFile] = {}
        self._room = Headroom(SHORTER_WINDOW)

    def __call__(self, ref: PartialRef) -> pa.Table:
        self._room.require(ref.size, _MERGING * ref.size, f"the {count(ref.rows)} rows of a partial ({size(ref.size)})")
        data = self._bytes(ref)
        if data.size != ref.size or zlib.crc32(data) != ref.crc:
            raise self._lost(ref, "is damaged: its bytes are not those that were written")
        return decoded(data)

    def _bytes(self, ref: PartialRef) -> pa.Buffer:
        try:
            file = self._files.get(ref.file)
            if file is None:
                file = self._files[ref.file] = self._store.open_input(ref.file)
            file.seek(ref.start)
            return file.read_buffer(ref.size)
        except FileNotFoundError as error:
            raise self._lost(ref, "is gone") from error
        except (OSError, pa.ArrowInvalid) as error:
            raise self._lost(ref, f"cannot be read ({error})") from error

    def _lost(self, ref: PartialRef, what: str) -> CheckpointError:
        return CheckpointError(
            f"{self._store.path(ref.file)} {what}: restore the whole checkpoint from a copy, or start with a new one"
        )
