"""A folder of output is one query's, one start of it at a time, and never ahead of its checkpoint."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.rows import SCHEMA, table

from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.folder_owner import OWNER, STAGE, QueryStart
from skypane.types import CheckpointError

NO_SPARK = cast("SparkSession", None)
FIRST, SECOND, THIRD = QueryStart("q", "first"), QueryStart("q", "second"), QueryStart("q", "third")


def times(folder: Path) -> list[int]:
    return sorted(
        at for path in folder.glob("*.parquet") for at in pq.read_table(path)["time"].cast("int64").to_pylist()
    )


def answers(driver: str, *at: int) -> BatchRows:
    """Answers that workers of a start wrote, a file each."""
    return BatchRows(SCHEMA, len(at), tables=(), driver=driver, files=tuple(f"{time}.parquet" for time in at))


def staged(out: Directory, driver: str, *at: int) -> BatchRows:
    stage = out.stage(driver)
    assert stage is not None
    for time in at:
        stage.write_parquet(f"{time}.parquet", SCHEMA, [table([time])])
    return replace(answers(driver, *at), store=stage)


def test_a_fenced_start_changes_nothing(tmp_path: Path):
    """Whether it had its files written already, or writes them now, or has fewer of them than the one in charge."""
    out = Directory(str(tmp_path))
    out.open(FIRST)
    waiting = staged(out, "first", 1)
    out.open(SECOND)
    out.write(NO_SPARK, staged(out, "second", 2, 3, 4), 0)
    with pytest.raises(FileNotFoundError):
        out.write(NO_SPARK, waiting, 0)
    with pytest.raises(FileNotFoundError):
        out.write(NO_SPARK, replace(answers("first"), row_count=1, tables=(table([5]),)), 0)
    with pytest.raises(FileNotFoundError):
        staged(out, "first", 6)
    with pytest.raises(FileNotFoundError):
        out.write(NO_SPARK, answers("first"), 0)  # no files: those that are there would be left over
    assert times(tmp_path) == [2, 3, 4]


def test_a_start_fenced_between_two_files_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = Directory(str(tmp_path))
    out.open(FIRST)
    both, move = staged(out, "first", 1, 2), DocumentStore.move

    def overtaken(self: DocumentStore, name: str, target: DocumentStore, target_name: str) -> None:
        move(self, name, target, target_name)
        if name == "1.parquet":
            out.open(SECOND)
            out.write(NO_SPARK, staged(out, "second", 3, 4, 5), 0)

    monkeypatch.setattr(DocumentStore, "move", overtaken)
    with pytest.raises(FileNotFoundError):
        out.write(NO_SPARK, both, 0)
    assert times(tmp_path) == [3, 4, 5]


def test_a_start_that_wakes_late_leaves_the_one_after_it_alone(tmp_path: Path):
    """It was fenced before it came to its folder, and finds that out there."""

    def taken_over() -> None:
        raise CheckpointError("taken over")

    out = Directory(str(tmp_path))
    out.open(SECOND)
    waiting = staged(out, "second", 1)
    with pytest.raises(CheckpointError, match="taken over"):
        out.open(replace(FIRST, check=taken_over))
    assert [path.name for path in (tmp_path / STAGE).iterdir()] == ["second"]
    out.write(NO_SPARK, waiting, 0)
    assert times(tmp_path) == [1]
    out.open(replace(THIRD, driver="another"))  # a name before that of the folder there: of an older copy
    assert [path.name for path in (tmp_path / STAGE).iterdir()] == ["another"]


@pytest.mark.parametrize("batch", [3, 4, 7])
def test_an_output_that_is_ahead_of_its_checkpoint_is_refused(batch: int, tmp_path: Path):
    out = Directory(str(tmp_path))
    out.open(FIRST)
    out.write(NO_SPARK, staged(out, "first", 1), batch)
    out.open(replace(SECOND, next_batch=batch))  # a try that was not committed
    name = f"part-{batch:012d}-00000.parquet"
    with pytest.raises(CheckpointError, match=f"{name} and 0 more files are of batches after {batch - 1}.*older than"):
        out.open(replace(SECOND, next_batch=batch - 1))
    assert times(tmp_path) == [1]


def test_an_output_may_move_with_its_owner_file(tmp_path: Path):
    """A folder that is moved goes on as it is; a new one needs the old one's owner file."""
    old, new, other = tmp_path / "old", tmp_path / "new", tmp_path / "other"
    Directory(str(old)).open(FIRST)
    moved = replace(SECOND, before=str(old), next_batch=1)
    with pytest.raises(CheckpointError, match=f"has written to {old} so far.*move the old folder.*copy its {OWNER}"):
        Directory(str(new)).open(moved)
    shutil.rmtree(new, ignore_errors=True)
    other.mkdir()
    shutil.copy(old / OWNER, other / OWNER)
    Directory(str(other)).open(moved)
    old.rename(new)
    Directory(str(new)).open(moved)
    assert [path.name for path in (new / STAGE).iterdir()] == ["second"]


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_a_damaged_owner_file_is_named(text: str, tmp_path: Path):
    Directory(str(tmp_path)).open(FIRST)
    (tmp_path / OWNER).write_text(text, encoding="ascii")
    with pytest.raises(CheckpointError, match=f"^{re.escape(str(tmp_path / OWNER))}, .* is damaged.*another folder"):
        Directory(str(tmp_path)).open(FIRST)
