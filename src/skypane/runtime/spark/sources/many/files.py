"""Files that grow by whole lines, as inputs: `{"path": ...}`. A place in one is a count of bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.runtime.growing import LONGEST, LOOK, Growing
from skypane.runtime.spark.sources.many import parquet
from skypane.runtime.spark.sources.many.kinds import Found, Range, plain_meta, values_of
from skypane.runtime.spark.sources.many.lines import header, parse_all
from skypane.runtime.spark.sources.many.parquet import ParquetInput
from skypane.runtime.spark.sources.many.parsing import FORMATS, Layout, Malformed
from skypane.runtime.spark.sources.many.patterns import AtPath
from skypane.types import CheckpointError, ConfigError

KEY: Final = "path"
"""What the mapping of such an input has: {"path": ...}."""


@dataclass(frozen=True, slots=True)
class FileInput(AtPath):
    """A file that grows by whole lines, or a pattern (*, ?, [..], **) for many of them.

    path     it may not be there yet
    name     what its rows are called by; of a pattern's files, each by its path
    format   "csv" or "json" (an object a line); None: as the file's name ends
    header   csv: whether its first line names the columns; without, they are those of the schema, in order
    meta     what is known of its rate beforehand
    exact    whether *, ? and [ in the path are letters of it, and no pattern
    """

    path: str
    name: str = ""
    format: str | None = None
    header: bool = False
    meta: MetaData = field(default_factory=MetaData)
    exact: bool = False

    kind: ClassVar[str] = KEY
    log: ClassVar[None] = None
    unit: ClassVar[str] = "byte"

    def __post_init__(self) -> None:
        self.settle()
        if self.format is None:
            ending = Path(self.path).suffix.lstrip(".").lower()
            object.__setattr__(
                self, "format", {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}.get(ending)
            )
        if self.format not in FORMATS:
            raise ConfigError(f"cannot tell from its name how {self.path} is written; need format csv or json")

    def plain(self) -> dict[str, Any]:
        return {"path": self.path, "name": self.name, "format": self.format, "header": self.header,
                "meta": plain_meta(self.meta), "exact": self.exact}  # fmt: skip

    def is_input(self, path: str) -> bool:
        return os.path.isfile(path)  # noqa: PTH113

    # A file may go away at any moment: then nothing more of it is complete.

    def per_row(self, start: int) -> float:
        with suppress(FileNotFoundError):
            if length := Growing(self.path).line_length(start):
                return length
        return float(LOOK)

    def complete(self, start: int, last: int) -> int:
        with suppress(FileNotFoundError):
            return Growing(self.path).complete(start, last)
        return start

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        with suppress(FileNotFoundError):
            return Growing(self.path).after(start, rows, last)
        return start, 0


def of(given: Mapping[str, Any], where: str) -> FileInput | ParquetInput:
    """Return the file or pattern that a mapping means; ConfigError, naming `where`, if it means none."""
    if Path(str(given["path"])).suffix.lower() == ".parquet" and "format" not in given:
        return parquet.of({"parquet" if name == "path" else name: value for name, value in given.items()}, where)
    return FileInput(**values_of(FileInput, given, where))


def look(listed: Sequence[FileInput], at: Mapping[str, int]) -> Iterator[Found]:
    """Yield the files that there are, each with its size."""
    for entry in listed:
        for one in entry.found():
            if (size := Growing(one.path).size()) is not None:
                yield Found(one, 0, size, _loss(one, size, at.get(one.name, 0)))


def _loss(one: FileInput, size: int, read: int) -> str:
    if size >= read:
        return ""
    return (
        f"{one.path} has {size:,} bytes, of which {read:,} were read: it was cut, or another file is in its place; put it "
        "back, name the new one differently"
    )


def read(parts: Sequence[Range], columns: pa.Schema) -> Iterator[tuple[Range, pa.Table | Malformed]]:
    """Yield the rows of files, one after the other."""
    for part in parts:
        for found in _rows(part, columns):
            yield part, found


def _rows(part: Range, columns: pa.Schema) -> Iterator[pa.Table | Malformed]:
    one, start, written = _file(part), part.start, tuple(columns.names)
    file = Growing(one.path)
    try:
        if one.header:
            end, _ = file.after(0, 1)
            written, start = header(file.read(0, min(end, LONGEST))), max(start, end)
        yield from parse_all(Layout(one.format or "", columns, written), file.blocks(start, part.end))
    except (FileNotFoundError, EOFError) as error:
        raise CheckpointError(
            f"input {one.name}: {one.path} ends before byte {part.end:,}, which a batch that has begun needs; put it back "
            "as it was"
        ) from error


def _file(part: Range) -> FileInput:
    assert isinstance(part.input, FileInput)  # noqa: S101 - ranges come here by their kind
    return part.input
