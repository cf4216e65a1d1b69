"""Compressed files that grow by whole lines, as inputs. Their offsets count bytes of the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from skypane.control.admission import MetaData
from skypane.runtime.compressed.compressed_file import CompressedFile
from skypane.runtime.compressed.formats import Compression
from skypane.runtime.compressed.unpacking import START, Mark
from skypane.runtime.growing_files import LOOK
from skypane.runtime.spark.sources.many.input_kind import InputExtent
from skypane.runtime.spark.sources.many.lacking_columns import NamingInput
from skypane.runtime.spark.sources.many.path_patterns import PathSpec, loss_of


@dataclass(frozen=True, slots=True)
class CompressedInput:
    """A compressed file, as planner and tasks know it.

    entry     its entry of the list
    file      the file, with a mark up to which it was read
    begin     bytes of the text that were read before
    estimate  the length of the text, if that is an estimate
    """

    entry: PathSpec
    file: CompressedFile
    begin: int
    estimate: int | None = None

    @property
    def kind(self) -> str:
        return self.entry.kind

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def identity(self) -> str:
        return self.entry.identity

    @property
    def origin(self) -> Mapping[str, Any]:
        return self.entry.origin

    @property
    def meta(self) -> MetaData:
        return self.entry.meta

    @property
    def log(self) -> None:
        return None

    @property
    def unit(self) -> str:
        return "byte"

    def names(self) -> tuple[str, ...] | None:
        return self.entry.names() if isinstance(self.entry, NamingInput) else None

    # As with plain files, a file may be removed at any moment: from then on no more rows of it are complete.

    def per_row(self, start: int) -> float:
        with suppress(FileNotFoundError):
            if length := self.file.line_length(start):
                return length
        return float(LOOK)

    def complete(self, start: int, last: int) -> int:
        with suppress(FileNotFoundError):
            return self.file.complete(start, self._end(last))
        return start

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        with suppress(FileNotFoundError):
            return self.file.after(start, rows, self._end(last))
        return start, 0

    def sample(self, near: int, rows: int, last: int) -> tuple[int, int]:
        if near < last:
            with suppress(FileNotFoundError):
                return self.file.sample(near, rows, self.begin)
        return near, near

    def mark(self, offset: int) -> tuple[int, int]:
        return self.file.mark_at(offset)

    def settled(self, place: int) -> tuple[int, int] | None:
        return self.file.settled(place)

    def _end(self, last: int) -> int | None:
        """Return where to stop: an estimated end stops nothing, because there may be more."""
        return None if self.estimate is not None and last >= self.estimate else last


def extents(
    entry: PathSpec, form: Compression, at: Mapping[str, int], marks: Mapping[str, Sequence[int]]
) -> Iterator[InputExtent]:
    """Yield the extent of one compressed file, if it exists; `marks` maps names to marks of earlier batches."""
    packed, text = marks.get(entry.name, START)
    read = at.get(entry.name, 0)
    one = CompressedInput(entry, CompressedFile(entry.identity, form, Mark(packed, text)), read)
    if (found := one.file.length(read)) is not None:
        length, exact = found
        one = one if exact else replace(one, estimate=length)
        yield InputExtent(one, 0, length, loss_of(entry, length, read))
