"""Logs that receivers write, as inputs: `{"segments": folder}`. Their offsets count all bytes that were ever received.

A log is read only up to its durable end. This part consists of whole lines, and a batch of it can always be replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.runtime.growing_files import LOOK, GrowingFile
from skypane.runtime.line_rows import parse_all
from skypane.runtime.receiving.checksums import check
from skypane.runtime.receiving.segments import between, end_of, first_of, is_log, segments_of
from skypane.runtime.row_parser import FORMATS, Malformed, RowFormat
from skypane.runtime.spark.sources.many.input_kind import InputExtent, OffsetRange, described
from skypane.runtime.spark.sources.many.path_patterns import PathSpec
from skypane.types import CheckpointError, ConfigError

KEY: Final = "segments"
"""The key of a mapping that chooses this kind."""


@dataclass(frozen=True, slots=True)
class SegmentsInput(PathSpec):
    """The log of one received input, or a pattern (*, ?, [..], **) that matches many.

    segments  the folder or pattern; the folder may be created later
    name      the name in the input column; each folder of a pattern is named by its path
    format    format of the lines: "json" (one object per line), or "csv" with the columns in the order of the schema
    meta      what is known of its rate beforehand
    exact     whether *, ? and [ in the path are literal
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
                if length := GrowingFile(part.path).line_length(max(start - part.begin, 0)):
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

    def sample(self, near: int, rows: int, last: int) -> tuple[int, int]:
        with suppress(FileNotFoundError, CheckpointError):
            for begin, stop, file, origin in _files(self.segments, near, last):
                start, end = file.sample(begin, rows, stop)
                if end > start:
                    return origin + start, origin + end
        return near, near


def of(given: Mapping[str, Any], where: str) -> SegmentsInput:
    """Return the log or pattern that a mapping describes; raise ConfigError, naming `where`, if it is invalid."""
    return described(SegmentsInput, given, where)


def look(listed: Sequence[SegmentsInput], at: Mapping[str, int]) -> Iterator[InputExtent]:
    """Yield the existing logs, each from its oldest remaining segment to its durable end."""
    for entry in listed:
        for one in entry.found():
            end, first = end_of(one.segments), first_of(one.segments)
            if end is not None and first is not None:
                yield InputExtent(one, first, end, _loss(one, first, end, at.get(one.name)))


def _loss(one: SegmentsInput, first: int, end: int, read: int | None) -> str:
    if read is None or first <= read <= end:
        return ""
    if read < first:
        return (
            f"segments of {one.segments} were removed up to byte {first:,}, but only {read:,} bytes were read; restore "
            "them from a copy, and list this query's checkpoint in read_by of the receiver"
        )
    return (
        f"the log {one.segments} ends at byte {end:,}, but {read:,} bytes were read: it was replaced; restore it, or "
        "give the new log another name"
    )


def read(parts: Sequence[OffsetRange], columns: pa.Schema) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of logs, in sequence."""
    for part in parts:
        for found in _rows(part, columns):
            yield part, found


def _rows(part: OffsetRange, columns: pa.Schema) -> Iterator[pa.Table | Malformed]:
    one = part.input
    assert isinstance(one, SegmentsInput)  # noqa: S101 - ranges come here by their kind
    layout = RowFormat(one.format, columns, tuple(columns.names))
    try:
        for begin, stop, file, origin in _files(one.segments, part.start, part.end):
            check(file.path, begin, stop)
            yield from parse_all(layout, file.blocks(begin, stop), origin)
    except (FileNotFoundError, EOFError, CheckpointError) as error:
        raise CheckpointError(f"input {one.name}: a started batch needs data that cannot be read: {error}") from error


def _files(folder: str, start: int, end: int) -> Iterator[tuple[int, int, GrowingFile, int]]:
    """Yield (begin, stop, file, origin) for bytes [start, end) of a log: bytes [begin, stop) of a file at `origin`."""
    for part in between(folder, start, end):
        yield max(start - part.begin, 0), min(end, part.end) - part.begin, GrowingFile(part.path), part.begin
