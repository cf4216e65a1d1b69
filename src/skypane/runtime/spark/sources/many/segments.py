"""Logs that receivers write, as inputs: `{"segments": folder}`. A place in one is a byte of all that was ever received.

What is there is read up to where it is on disk for good, so it is whole lines, and a batch can always be read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.runtime.growing import LOOK, Growing
from skypane.runtime.receiving.segments import between, end_of, first_of, is_log, segments_of
from skypane.runtime.receiving.sums import check
from skypane.runtime.spark.sources.many.kinds import Found, Range, plain_meta, values_of
from skypane.runtime.spark.sources.many.lines import parse_all
from skypane.runtime.spark.sources.many.parsing import FORMATS, Layout, Malformed
from skypane.runtime.spark.sources.many.patterns import AtPath
from skypane.types import CheckpointError, ConfigError

KEY: Final = "segments"
"""What the mapping of such an input has: {"segments": ...}."""


@dataclass(frozen=True, slots=True)
class SegmentsInput(AtPath):
    """What one receiver writes, or a pattern (*, ?, [..], **) for many of them.

    segments  the folder; it may not be there yet
    name      what its rows are called by; of a pattern's folders, each by its path
    format    how the lines are written: "json" (an object a line), or "csv", columns in the order of the schema
    meta      what is known of its rate beforehand
    exact     whether *, ? and [ in the path are letters of it, and no pattern
    """

    segments: str
    name: str = ""
    format: str = "json"
    meta: MetaData = field(default_factory=MetaData)
    exact: bool = False

    kind: ClassVar[str] = KEY
    unit: ClassVar[str] = "byte"

    def __post_init__(self) -> None:
        self.settle()
        if self.format not in FORMATS:
            raise ConfigError(f"format of {self.segments} must be csv or json, got {self.format!r}")

    def plain(self) -> dict[str, Any]:
        return {
            "segments": self.segments,
            "name": self.name,
            "format": self.format,
            "meta": plain_meta(self.meta),
            "exact": self.exact,
        }

    @property
    def log(self) -> str:
        return self.segments

    def is_input(self, path: str) -> bool:
        return is_log(path)

    def per_row(self, start: int) -> float:
        with suppress(OSError):
            for part in segments_of(self.segments):
                if part.end <= start:
                    continue
                if length := Growing(part.path).line_length(max(start - part.begin, 0)):
                    return length
        return float(LOOK)

    def complete(self, start: int, last: int) -> int:
        return max(start, last)

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        end, counted = start, 0
        with suppress(FileNotFoundError):
            for begin, stop, file, origin in _files(self.segments, start, last):
                stopped, lines = file.after(begin, rows - counted, stop)
                end, counted = origin + stopped, counted + lines
                if counted == rows:
                    break
        return end, counted


def of(given: Mapping[str, Any], where: str) -> SegmentsInput:
    """Return the log or pattern that a mapping means; ConfigError, naming `where`, if it means none."""
    return SegmentsInput(**values_of(SegmentsInput, given, where))


def look(listed: Sequence[SegmentsInput], at: Mapping[str, int]) -> Iterator[Found]:
    """Yield the logs that there are, each from the oldest segment that is left to where it is on disk for good."""
    for entry in listed:
        for one in entry.found():
            end, first = end_of(one.segments), first_of(one.segments)
            if end is not None and first is not None:
                yield Found(one, first, end, _loss(one, first, end, at.get(one.name)))


def _loss(one: SegmentsInput, first: int, end: int, read: int | None) -> str:
    if read is None or first <= read <= end:
        return ""
    if read < first:
        return (
            f"segments of {one.segments} were removed up to byte {first:,}, of which {read:,} were read; restore them from a "
            "copy, and name this query's checkpoint in read_by where they are received"
        )
    return (
        f"the log {one.segments} ends at byte {end:,}, of which {read:,} were read: another one is in its place; put it "
        "back, name the new one differently"
    )


def read(parts: Sequence[Range], columns: pa.Schema) -> Iterator[tuple[Range, pa.Table | Malformed]]:
    """Yield the rows of logs, one after the other."""
    for part in parts:
        for found in _rows(part, columns):
            yield part, found


def _rows(part: Range, columns: pa.Schema) -> Iterator[pa.Table | Malformed]:
    one = part.input
    assert isinstance(one, SegmentsInput)  # noqa: S101 - ranges come here by their kind
    layout = Layout(one.format, columns, tuple(columns.names))
    try:
        for begin, stop, file, origin in _files(one.segments, part.start, part.end):
            check(file.path, begin, stop)
            yield from parse_all(layout, file.blocks(begin, stop), origin)
    except (FileNotFoundError, EOFError, CheckpointError) as error:
        raise CheckpointError(f"input {one.name}: a batch that has begun needs what cannot be read: {error}") from error


def _files(folder: str, start: int, end: int) -> Iterator[tuple[int, int, Growing, int]]:
    """Yield the bytes of files, from and to, that bytes [start, end) of a log are, and where each file begins in it."""
    for part in between(folder, start, end):
        yield max(start - part.begin, 0), min(end, part.end) - part.begin, Growing(part.path), part.begin
