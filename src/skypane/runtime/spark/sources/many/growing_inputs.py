"""Files that grow by whole lines, as inputs: `{"path": ...}`. Their offsets count bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.runtime.growing_files import LONGEST, LOOK, GrowingFile
from skypane.runtime.line_rows import header, parse_all
from skypane.runtime.row_parser import FORMATS, Malformed, RowFormat
from skypane.runtime.spark.sources.many import parquet
from skypane.runtime.spark.sources.many.input_kind import InputExtent, OffsetRange, described
from skypane.runtime.spark.sources.many.parquet import ParquetInput
from skypane.runtime.spark.sources.many.path_patterns import PathSpec, existing
from skypane.types import CheckpointError, ConfigError

KEY: Final = "path"
"""The key of a mapping that chooses this kind."""


@dataclass(frozen=True, slots=True)
class FileInput(PathSpec):
    """A file that grows by whole lines, or a pattern (*, ?, [..], **) that matches many.

    path     the path or pattern; the file may be created later
    name     the name in the input column; each file of a pattern is named by its path
    format   "csv" or "json" (one object per line); None: by the ending of the file's name
    header   csv: whether the first line names the columns; if not, they are those of the schema, in order
    meta     what is known of its rate beforehand
    exact    whether *, ? and [ in the path are literal
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
            raise ConfigError(f"format of {self.path} is unknown; set format to csv or json")

    # A file may be removed at any moment: from then on no more rows of it are complete.

    def per_row(self, start: int) -> float:
        with suppress(FileNotFoundError):
            if length := GrowingFile(self.path).line_length(start):
                return length
        return float(LOOK)

    def complete(self, start: int, last: int) -> int:
        with suppress(FileNotFoundError):
            return GrowingFile(self.path).complete(start, last)
        return start

    def after(self, start: int, rows: int, last: int) -> tuple[int, int]:
        with suppress(FileNotFoundError):
            return GrowingFile(self.path).after(start, rows, last)
        return start, 0

    def sample(self, near: int, rows: int, last: int) -> tuple[int, int]:
        with suppress(FileNotFoundError):
            return GrowingFile(self.path).sample(near, rows, last)
        return near, near


def of(given: Mapping[str, Any], where: str) -> FileInput | ParquetInput:
    """Return the file or pattern that a mapping describes; raise ConfigError, naming `where`, if it is invalid."""
    if Path(str(given["path"])).suffix.lower() == ".parquet" and "format" not in given:
        return parquet.of({"parquet" if name == "path" else name: value for name, value in given.items()}, where)
    return described(FileInput, given, where)


def look(listed: Sequence[FileInput], at: Mapping[str, int]) -> Iterator[InputExtent]:
    """Yield the existing files, each with its size."""
    return existing(listed, at, lambda path: GrowingFile(path).size())


def read(parts: Sequence[OffsetRange], columns: pa.Schema) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of files, in sequence."""
    for part in parts:
        for found in _rows(part, columns):
            yield part, found


def _rows(part: OffsetRange, columns: pa.Schema) -> Iterator[pa.Table | Malformed]:
    one, start, written = part.input, part.start, tuple(columns.names)
    assert isinstance(one, FileInput)  # noqa: S101 - ranges come here by their kind
    file = GrowingFile(one.path)
    try:
        if one.header:
            end, _ = file.after(0, 1)
            written, start = header(file.read(0, min(end, LONGEST))), max(start, end)
        yield from parse_all(RowFormat(one.format or "", columns, written), file.blocks(start, part.end))
    except (FileNotFoundError, EOFError) as error:
        raise CheckpointError(
            f"input {one.name}: {one.path} ends before byte {part.end:,}, which a started batch needs; restore the file"
        ) from error
