"""Files of partials: immutable and named by task attempt; each reference to a partial has its checksum.

A file is a sequence of independent Arrow streams, one per partial, so a reader maps only the partials that it needs.
"""

from __future__ import annotations

import re
import uuid
import zlib
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Any, Self

import pyarrow as pa

from skypane.runtime.memory_headroom import SHORTER_WINDOW, Headroom
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.table_batching import decoded, encoded
from skypane.types import CheckpointError
from skypane.wording import count, size

PARTIALS = "partials"

_MERGING = 3
"""Memory that a partial takes, as a multiple of its bytes: the partial itself, and the tables made from it."""

_NAME = re.compile(r"\d{12}-\d{5}-[0-9a-f]{32}\.arrow")


@dataclass(frozen=True, slots=True)
class PartialReference:
    """One partial of `rows` rows: the bytes [start, start + size) of a file of the store, with the checksum `crc`."""

    file: str
    start: int
    size: int
    crc: int
    rows: int

    def snapshot(self) -> list[Any]:
        return list(astuple(self))

    @classmethod
    def restored(cls, value: Any) -> Self:
        """Return the reference; raise CheckpointError unless its file has a name as attempt_name() returns it.

        The engine deletes the file later, so it must be one of its own.
        """
        try:
            ref = cls(*value)
            numbers = (ref.start, ref.size, ref.crc, ref.rows)
            sound = _NAME.fullmatch(ref.file) and all(type(number) is int and number >= 0 for number in numbers)
        except TypeError:
            sound = None
        if not sound:
            raise CheckpointError(f"{value!r} is not a reference to a partial: the manifest was changed by hand")
        return ref


def attempt_name(batch_id: int, task: int) -> str:
    """Return a file name for one attempt of one task; no other attempt uses it, even after a restart."""
    return f"{batch_id:012d}-{task:05d}-{uuid.uuid4().hex}.arrow"


def write(store: DocumentStore, name: str, partials: Iterable[pa.Table]) -> list[PartialReference]:
    """Write a file of partials, and return references to them; the commit synchronises the file to disk."""
    return write_blocks(store, name, ((encoded(partial), partial.num_rows) for partial in partials))


def write_blocks(store: DocumentStore, name: str, blocks: Iterable[tuple[pa.Buffer, int]]) -> list[PartialReference]:
    """Write a file of blocks, each with its number of rows, and return references to them."""
    refs, start = [], 0
    with store.open_output(name) as stream:
        for data, rows in blocks:
            stream.write(data)
            refs.append(PartialReference(name, start, data.size, zlib.crc32(data), rows))
            start += data.size
    return refs


class PartialReader:
    """Reads partials, and opens each file once.

    Raises CheckpointError if a partial is damaged or missing, MemoryLimitError without enough memory to process it.
    """

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._files: dict[str, pa.NativeFile] = {}
        self._room = Headroom(SHORTER_WINDOW)

    def __call__(self, ref: PartialReference) -> pa.Table:
        return decoded(self.read(ref))

    def read(self, ref: PartialReference) -> pa.Buffer:
        """Return the bytes to which a reference points, once their checksum matches."""
        self._room.require(ref.size, _MERGING * ref.size, f"the {count(ref.rows)} rows of a partial ({size(ref.size)})")
        data = self._bytes(ref)
        if data.size != ref.size or zlib.crc32(data) != ref.crc:
            raise self._lost(ref, "is damaged: its checksum does not match")
        return data

    def _bytes(self, ref: PartialReference) -> pa.Buffer:
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

    def _lost(self, ref: PartialReference, what: str) -> CheckpointError:
        return CheckpointError(
            f"{self._store.path(ref.file)} {what}: restore the whole checkpoint from a copy, or start with a new one"
        )
