"""Files and folders of a checkpoint are torn, flipped or gone: what is wrong is named, or the stream goes on as it was."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.rows import flipped
from tests.runtime.driver import Task, job_of
from tests.runtime.streams import expected, finish, late_rows, parquet_rows, windows_of, write_batches

import skypane as sp

FILES = late_rows(9)
PLACES = ("checkpoint", "out", "late")
Damage = Callable[[Path], None]


def gone(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
        _checksum(path).unlink(missing_ok=True)


def torn(path: Path) -> None:
    """As a power cut leaves it: half of the file, and nothing of Hadoop's checksum."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _checksum(path).unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")
    _checksum(path).unlink()


def bit_flipped(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, 4 * len(whole)))


def _checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stream that was stopped after half of its files."""
    folder = tmp_path_factory.mktemp("stopped")
    write_batches(folder / "in", FILES[:3])
    finish(job_of(spark, Task(str(folder))))
    write_batches(folder / "in", FILES[3:], first=3)
    for place in PLACES:
        shutil.copytree(folder / place, folder / "copy" / place)
    return folder


@pytest.fixture
def folder(stopped: Path) -> Path:
    """The folder as it was when the stream was stopped."""
    for place in PLACES:
        shutil.rmtree(stopped / place)
        shutil.copytree(stopped / "copy" / place, stopped / place)
    return stopped


def message(folder: Path, spark: SparkSession) -> str:
    """Return what a start says that fails."""
    with pytest.raises(sp.SkypaneError) as error:
        finish(job_of(spark, Task(str(folder))))
    return str(error.value)


REMEDY = "restore the whole checkpoint from a copy, or start with a new one"
LOGS = ["offsets/2", "commits/2", "sources/0/1", "sources/0/2"]


@pytest.mark.parametrize("name", [*LOGS, "metadata"])
@pytest.mark.parametrize("damage", [torn, empty, bit_flipped])
def test_a_damaged_file_of_sparks_is_named(name: str, damage: Damage, folder: Path, spark: SparkSession):
    path = folder / "checkpoint" / name
    damage(path)
    assert re.search(f"^{path}, .* is (empty|damaged.*): {REMEDY}$", message(folder, spark))


@pytest.mark.parametrize(
    ("name", "missed"),
    [
        ("offsets", "offsets/2"),
        ("offsets/2", "offsets/2"),
        ("sources", "sources/0/2"),
        ("sources/0", "sources/0/2"),
        ("sources/0/2", "sources/0/2"),
        ("sources/0/1", "sources/0/1"),
        ("metadata", "metadata"),
    ],
)
def test_what_is_gone_of_sparks_is_named(name: str, missed: str, folder: Path, spark: SparkSession):
    gone(folder / "checkpoint" / name)
    path = folder / "checkpoint" / missed
    assert re.search(f"^{path}, .* is gone: {REMEDY}$", message(folder, spark))


def test_a_ledger_that_is_gone_is_reported_by_the_output(folder: Path, spark: SparkSession):
    gone(folder / "checkpoint" / "skypane" / "ledger")
    assert re.search(
        r"late-000000000001-00000.parquet .*batches after 0, .*older than the output", message(folder, spark)
    )


def test_a_newest_manifest_that_is_gone_is_missed(folder: Path, spark: SparkSession):
    """By partials that the one before it names and that went with it, or by Spark, which goes on after it."""
    newest = max((folder / "checkpoint" / "skypane" / "ledger").iterdir())
    assert newest.name == "000000000002.json"
    newest.unlink()
    assert re.search("is gone: restore|is gone, and|removed or restored without the other", message(folder, spark))


SPARED = ["commits", "commits/2", "skypane/owner", "skypane/rejected", "skypane/answers"]


@pytest.mark.parametrize("name", ["commits", *(pytest.param(name, marks=pytest.mark.slow) for name in SPARED[1:])])
def test_what_can_be_made_again_may_be_gone(name: str, folder: Path, spark: SparkSession):
    gone(folder / "checkpoint" / name)
    finish(job_of(spark, Task(str(folder))))
    assert windows_of(parquet_rows(folder / "out")) == expected(Task(str(folder)).plan, FILES)


def test_a_checkpoint_of_many_batches_is_sound(spark: SparkSession, tmp_path: Path):
    """Spark has gathered what it says of its files by then, and deleted what it needs no more."""
    session = spark.newSession()
    session.conf.set("spark.sql.streaming.fileSource.log.compactInterval", 3)
    session.conf.set("spark.sql.streaming.fileSource.log.cleanupDelay", 1)
    session.conf.set("spark.sql.streaming.minBatchesToRetain", 2)
    files, task = late_rows(9, batches=11), Task(str(tmp_path))
    for first in (0, 7):
        write_batches(tmp_path / "in", files[first : first + 7], first=first)
        finish(job_of(session, task))
    notes = sorted(path.name for path in (tmp_path / "checkpoint" / "sources" / "0").iterdir() if path.suffix != ".crc")
    assert "8.compact" in notes
    assert "0" not in notes
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, files)
