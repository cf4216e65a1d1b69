"""Files that grow by whole lines, as inputs: `{"path": ...}`. Their offsets count bytes; of compressed files, of the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from skypane.control.admission import MetaData
from skypane.locations import Location
from skypane.runtime.compressed.compressed_file import CompressedFile
from skypane.runtime.compressed.formats import Compression, check_compression, compression_of, without_ending
from skypane.runtime.growing_files import LOOK, GrowingFile
from skypane.runtime.line_rows import header
from skypane.runtime.row_parser import FORMATS, Malformed
from skypane.runtime.spark.sources.many import object_folders, parquet
from skypane.runtime.spark.sources.many.compressed_inputs import CompressedInput, extents
from skypane.runtime.spark.sources.many.input_kind import InputExtent, OffsetRange, described
from skypane.runtime.spark.sources.many.line_numbers import LineNumbers
from skypane.runtime.spark.sources.many.object_entry import ObjectsInput
from skypane.runtime.spark.sources.many.parquet import ParquetInput
from skypane.runtime.spark.sources.many.path_patterns import PathSpec, loss_of
from skypane.runtime.spark.sources.many.text_rows import rows_of_text
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
    compression  "gzip", "zstd", "bz2" or "xz"; "none" for a plain file; None: by the ending of each file's name
    """

    path: str
    name: str = ""
    format: str | None = None
    header: bool = False
    meta: MetaData = field(default_factory=MetaData)
    exact: bool = False
    compression: str | None = None

    kind: ClassVar[str] = KEY
    log: ClassVar[None] = None
    unit: ClassVar[str] = "byte"

    def __post_init__(self) -> None:
        self.settle()
        if self.format is None:
            ending = Path(without_ending(self.path)).suffix.lstrip(".").lower()
            object.__setattr__(
                self, "format", {"csv": "csv", "json": "json", "jsonl": "json", "ndjson": "json"}.get(ending)
            )
        if self.format not in FORMATS:
            raise ConfigError(f"format of {self.path} is unknown; set format to csv or json")
        if (form := self.compression or getattr(self.packed, "name", None)) is not None:
            check_compression(form, self.path)

    @property
    def packed(self) -> Compression | None:
        """The format of a compressed file."""
        return compression_of(self.path, self.compression)

    def plain(self) -> dict[str, Any]:
        values = PathSpec.plain(self)
        if self.compression is None:  # earlier versions had no such field, and a resumed job must have the same text
            del values["compression"]
        return values

    def names(self) -> tuple[str, ...] | None:
        """Return the columns that the first line names, none before it is there; None if it names none."""
        if not self.header:
            return None
        file = GrowingFile(self.path) if self.packed is None else CompressedFile(self.path, self.packed)
        with suppress(OSError):
            return header(file.first_line().text)
        return ()

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


def of(given: Mapping[str, Any], where: str) -> FileInput | ParquetInput | ObjectsInput:
    """Return the file or pattern that a mapping describes, or the folder of an object store.

    Raises ConfigError, naming `where`, if it is invalid.
    """
    if Location.of(given["path"], "path of an input").is_object:
        return object_folders.of({"objects" if name == "path" else name: value for name, value in given.items()}, where)
    if Path(str(given["path"])).suffix.lower() == ".parquet" and "format" not in given:
        return parquet.of({"parquet" if name == "path" else name: value for name, value in given.items()}, where)
    return described(FileInput, given, where)


def look(
    listed: Sequence[FileInput], at: Mapping[str, int], marks: Mapping[str, Sequence[int]] | None = None
) -> Iterator[InputExtent]:
    """Yield the existing files, each with its size; of compressed ones, the size of the text, or an estimate of it."""
    for entry in listed:
        for one in entry.found():
            if (form := one.packed) is not None:
                yield from extents(one, form, at, marks or {})
            elif (there := GrowingFile(one.path).written()) is not None:
                size, written = there
                yield InputExtent(one, 0, size, loss_of(one, size, at.get(one.name, 0)), written)


def read(parts: Sequence[OffsetRange], columns: pa.Schema) -> Iterator[tuple[OffsetRange, pa.Table | Malformed]]:
    """Yield the rows of files, in sequence."""
    for part in parts:
        for found in _rows(part, columns):
            yield part, found


def _rows(part: OffsetRange, columns: pa.Schema) -> Iterator[pa.Table | Malformed]:
    one = part.input
    entry = one.entry if isinstance(one, CompressedInput) else one
    assert isinstance(entry, FileInput)  # noqa: S101 - ranges come here by their kind
    file = one.file if isinstance(one, CompressedInput) else GrowingFile(entry.path)
    lines = LineNumbers(entry.path, file.read if isinstance(file, GrowingFile) else None)
    try:
        yield from rows_of_text(
            file, lines, entry.format or "", columns, part.start, part.end, names_columns=entry.header
        )
    except (FileNotFoundError, EOFError) as error:
        raise CheckpointError(
            f"input {entry.name}: {entry.path} ends before byte {part.end:,}, which a started batch needs; restore the "
            "file"
        ) from error
