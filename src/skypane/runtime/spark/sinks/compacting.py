"""A copy of a folder of parquet in fewer, larger files; the folder itself is only read.

No file system replaces several files at once, so a reader that lists a folder while files are joined in it would find rows
twice, or not at all (docs/decisions/25-rows-wait-for-their-file.md). The copy has no reader before it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.folder_owner import ANSWERS, OWNER, REJECTED, STAGE
from skypane.types import CheckpointError, ConfigError, SkypaneError

_PART = re.compile(rf"{ANSWERS}-(\d{{12}})-\d{{5}}\.\w+")

_CHUNK: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Compacted:
    """The files that were copied, and the files and rows of the copy."""

    files: int
    copied: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Batch:
    """The files of one batch, in order."""

    number: int
    names: tuple[str, ...]
    schema: pa.Schema
    size: int
    rows: int


def compact(source: DocumentStore, target: DocumentStore, size: int) -> Compacted:
    """Copy a folder of answers, with the files of consecutive batches joined to about `size` bytes.

    A joined file has the name of the last of its batches, and the newest batch keeps its own files, so a query that is
    started with the copy as its folder recognises a batch that comes again. Raises ConfigError if `source` is not such a
    folder, or `target` is in it or not empty; CheckpointError if a file cannot be read; SkypaneError if the copy cannot
    be completed.
    """
    owner = _owner(source)
    _check_target(source, target)
    names = [name for name in source.names() if _PART.fullmatch(name)]
    if others := [name for name in names if not name.endswith(".parquet")]:
        raise ConfigError(f"{source.path(others[0])} is not parquet, and only files of parquet can be joined")
    batches = [_batch(source, number, list(of_batch)) for number, of_batch in groupby(names, _number)]
    try:
        stage = target.child(STAGE).child("compact")
        stage.make()
        copied = sum(
            _copy(source, target, stage, group, join=group[-1] is not batches[-1] and bool(group[0].schema.names))
            for group in _groups(batches, size)
        )
        target.remove_folder(STAGE)
        target.sync("")
        target.write_json(OWNER, owner)  # last: a folder without it is not complete
    except (OSError, pa.ArrowInvalid) as error:
        raise SkypaneError(
            f"the copy in {target.root} cannot be completed ({error}): remove it, and copy the folder again"
        ) from error
    return Compacted(len(names), copied, sum(batch.rows for batch in batches))


def _owner(source: DocumentStore) -> dict[str, str]:
    try:
        owner: dict[str, str] = source.read_json(OWNER)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{source.root} is not the folder of a query's answers: it has no valid {OWNER} ({error})"
        ) from error
    holds = owner.get("holds")
    if holds == REJECTED:  # a readmission takes the files after the last batch that was readmitted, as whole files
        raise ConfigError(
            f"{source.root} holds rejected rows: readmit() finds them by the number of their batch, and would bring rows "
            f"of a joined file back twice. For fewer files, give late= a roll"
        )
    if holds != ANSWERS:
        raise ConfigError(f"{source.root} holds a current front, which is one file")
    return owner


def _check_target(source: DocumentStore, target: DocumentStore) -> None:
    folder, copy = (str(store.place.resolved()).rstrip("/") for store in (source, target))
    if f"{copy}/".startswith(f"{folder}/"):
        raise ConfigError(f"{target.root} is in the folder that is copied, whose readers would find its rows twice")
    try:
        is_empty = not target.names() and not target.folders()
    except OSError as error:  # such as a file of that name
        raise ConfigError(f"{target.root} cannot be a folder ({error}): name one that does not exist yet") from error
    if not is_empty:
        raise ConfigError(f"{target.root} is not empty: name a folder that does not exist yet")


def _number(name: str) -> int:
    return int(name.split("-")[1])


def _batch(source: DocumentStore, number: int, names: list[str]) -> _Batch:
    metadata = []
    for name in names:
        try:
            with source.open_input(name) as stream:
                metadata.append(pq.read_metadata(stream))
        except (OSError, pa.ArrowInvalid) as error:
            raise CheckpointError(f"{source.path(name)} cannot be read ({error}): restore it from a copy") from error
    schema = metadata[0].schema.to_arrow_schema()
    if not all(one.schema.to_arrow_schema().equals(schema) for one in metadata):
        schema = pa.schema([])  # joined with no other
    rows = sum(one.num_rows for one in metadata)
    return _Batch(number, tuple(names), schema, sum(map(_compressed, metadata)), rows)


def _compressed(metadata: pq.FileMetaData) -> int:
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return sum(group.column(index).total_compressed_size for group in groups for index in range(group.num_columns))


def _groups(batches: list[_Batch], size: int) -> Iterator[list[_Batch]]:
    """Yield runs of batches whose files become one; the newest batch is alone."""
    group: list[_Batch] = []
    for place, batch in enumerate(batches):
        is_newest = place == len(batches) - 1
        if group and (is_newest or not group[0].schema.equals(batch.schema) or not batch.schema.names):
            yield group
            group = []
        group.append(batch)
        if is_newest or sum(one.size for one in group) >= size:
            yield group
            group = []


def _copy(
    source: DocumentStore, target: DocumentStore, stage: DocumentStore, group: list[_Batch], *, join: bool
) -> int:
    """Write the files of a run of batches, as one file if they are to be joined; return the number of files."""
    names = [name for batch in group for name in batch.names]
    if not join or len(names) == 1:
        for name in names:
            with source.open_input(name) as read, _writes_to(target, stage).open_output(name) as written:
                while chunk := read.read(_CHUNK):
                    written.write(chunk)
            _publish(target, stage, name)
        return len(names)
    schema, name = group[0].schema, f"{group[-1].names[0].rpartition('-')[0]}-00000.parquet"
    tables = (source.read_parquet(one, schema) for one in names)
    _writes_to(target, stage).write_parquet(name, schema, tables)
    _publish(target, stage, name)
    return 1


def _writes_to(target: DocumentStore, stage: DocumentStore) -> DocumentStore:
    """Return where a file is written: an object appears when it is complete, and is not moved."""
    return target if target.objects is not None else stage


def _publish(target: DocumentStore, stage: DocumentStore, name: str) -> None:
    if target.objects is None:
        stage.sync(name)
        stage.move(name, target, name)
