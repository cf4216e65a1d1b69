"""What a start makes of what it finds: a checkpoint that is whole, damaged, torn, in part gone, or of another job; sinks that fail.

Streams that are killed are in tests/nature and tests/chaos.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.checkout import PYTHONPATH, ROOT
from tests.rows import flipped
from tests.runtime.driver import SKYLINE, WINDOWS, Task, job_of
from tests.runtime.restarts.test_ledger import DAMAGES
from tests.runtime.streams import (
    NaiveWatermark,
    Window,
    csv_rows,
    expected,
    finish,
    late_rows,
    parquet_rows,
    windows_of,
    write_batches,
)

import skypane as sp
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import Score
from skypane.runtime import local
from skypane.runtime.spark.document_store import DRAFT, DocumentStore
from skypane.runtime.spark.engine.ledger import KEEP, Ledger, Manifest

PATIENCE = 180
"""Seconds until a query that does not end is taken for hung."""
FILES = late_rows(9)
IN_PLACE = ("in", "copy")
"""What a test of a stream that was stopped does not change."""
Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def stopped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a task of six batches that has been stopped after the third, and a copy of it."""
    folder = tmp_path_factory.mktemp("stopped")
    write_batches(folder / "in", FILES[:3])
    finish(job_of(spark, Task(str(folder))))
    write_batches(folder / "in", FILES[3:], first=3)
    for place in ("checkpoint", "out", "late"):
        shutil.copytree(folder / place, folder / "copy" / place)
    return folder


@pytest.fixture
def begun(stopped: Path) -> Path:
    """The folder as it was when the stream was stopped: Spark's part of a checkpoint needs its source where it was."""
    for path in stopped.iterdir():
        if path.name not in IN_PLACE:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    shutil.copytree(stopped / "copy", stopped, dirs_exist_ok=True)
    return stopped


def committed(folder: Path, files: Sequence[pa.Table]) -> list[pa.Table]:
    """Return the batches that the ledger says have been committed of the rows of files.

    A driver that ends after Spark has noted a new file, and before it has noted the batch, leaves it to the next batch.
    """
    rows = [batch["rows"] for batch in Ledger(_kept(folder)).history(KEEP)]
    all_rows = pa.concat_tables(files)
    return [all_rows.slice(start, end - start) for start, end in pairwise(accumulate(rows, initial=0))]


def assert_is_complete(folder: Path, files: Sequence[pa.Table]) -> None:
    """Output, late rows, counts and files are those of a stream that nothing has disturbed."""
    task, batches = Task(str(folder)), committed(folder, files)
    assert sum(batch.num_rows for batch in batches) == sum(file.num_rows for file in files)
    assert windows_of(parquet_rows(folder / "out")) == expected(task.plan, batches)
    naive = NaiveWatermark(WINDOWS.longest_pane)
    for batch in batches:
        naive.take(batch)
    assert sorted(parquet_rows(folder / "late")["id"].to_pylist()) == sorted(naive.late)
    last = Ledger(_kept(folder)).history(1)[0]
    assert last["dropped_rows"] == len(naive.late) > 0
    assert last["seen_rows"] == sum(file.num_rows for file in files)
    kept = _kept(folder)
    manifest = Ledger(kept).latest()
    assert manifest is not None
    named = {ref[0] for refs in manifest.operator["panes"].values() for ref in refs}
    assert set(kept.child("partials").names()) == named
    assert not kept.child("rejected").names()
    assert not kept.child("answers").names()
    assert [list(epoch.iterdir()) for epoch in Path(kept.child("owner").root).iterdir()] == [[]]
    for output in ("out", "late"):
        assert not [path for path in (folder / output / "_staging").rglob("*") if path.is_file()]


def _kept(folder: Path) -> DocumentStore:
    return DocumentStore.at(f"{folder}/checkpoint").child("skypane")


def test_a_drain_that_was_begun_comes_again_before_any_other_batch(spark: SparkSession, tmp_path: Path):
    task, files = Task(str(tmp_path)), late_rows(8, batches=5)
    delivered: list[tuple[int, pa.Table]] = []

    def take(rows: DataFrame, batch_id: int) -> None:
        delivered.append((batch_id, rows.toArrow()))
        if [number for number, _ in delivered] == [0, 1, 2, 3]:
            raise ConnectionError("the database is gone")  # which is not Java

    write_batches(tmp_path / "in", files[:3])
    handle = job_of(spark, task, output=take).start(trigger="available now")
    assert handle.await_termination(PATIENCE)
    with pytest.raises(ConnectionError, match="the database is gone"):
        handle.drain()
    write_batches(tmp_path / "in", files[3:], first=3)
    finish(job_of(spark, task, output=take))
    assert [number for number, _ in delivered] == [0, 1, 2, 3, 3, 4, 5]
    assert delivered[3][1].equals(delivered[4][1])
    answered = windows_of(pa.concat_tables(table for _, table in [*delivered[:3], *delivered[4:]]))
    assert answered == expected(task.plan, [*files[:3], local.Drain(), *files[3:]])


def test_what_a_manifest_names_is_on_the_disk_before_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kept, synced, named = tmp_path / "checkpoint" / "skypane" / "partials", set[Path](), set[Path]()
    fsync, commit = os.fsync, Ledger.commit

    def noted(handle: int) -> None:
        fsync(handle)
        synced.add(Path(f"/proc/self/fd/{handle}").readlink())

    def checked(ledger: Ledger, manifest: Manifest) -> None:
        now = {kept / ref[0] for refs in manifest.operator["panes"].values() for ref in refs}
        assert now <= synced
        assert now <= named or kept in synced, "so is the list of them"
        synced.discard(kept)
        named.update(now)
        commit(ledger, manifest)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(Ledger, "commit", checked)
    write_batches(tmp_path / "in", late_rows(9, batches=3))
    assert len(finish(job_of(spark, Task(str(tmp_path))))) == 3
    assert len(named) >= 3


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "query": ({"query": TopK(3, Score.of("price"), ("sensor",))}, r"query\.query was 'skyline', is 'top_k'"),
    "preference": ({"query": Skyline(sp.low("price") & sp.high("rating"), ("sensor",))}, r"query\.levels was "),
    "groups": ({"query": Skyline(SKYLINE.preference)}, r"query\.by was \['sensor'\], is \[\]"),
    "slide": ({"slide": "10 s"}, r"window\.slide was 20000000, is 10000000"),
    "length": ({"window": "70 s"}, r"window\.length was 50000000, is 70000000"),
    "offset": ({"window": replace(WINDOWS, offset=5), "slide": None}, r"window\.offset was 0, is 5"),
    "time": ({"time": "sent"}, r"time was 'ts', is 'sent'"),
    "source": ({"source": "sensor"}, r"source was None, is 'sensor'"),
    "policy": ({"progress": sp.KSlack()}, r"progress\.policy was 'Watermark', is 'KSlack'"),
}


@pytest.mark.parametrize(("changed", "difference"), OTHERS.values(), ids=OTHERS.keys())
def test_a_checkpoint_of_another_job_is_refused(
    changed: dict[str, Any], difference: str, begun: Path, spark: SparkSession
):
    job = job_of(spark, Task(str(begun)), **changed)
    with pytest.raises(sp.CheckpointError, match=f"belongs to another query.*{difference}.*another checkpoint"):
        job.start()


@pytest.mark.parametrize("document", ["definition.json", "ledger/000000000002.json"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_document_is_named(document: str, damage: Callable[[bytes], bytes], begun: Path, spark: SparkSession):
    path = begun / "checkpoint" / "skypane" / document
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(sp.CheckpointError, match=f"{path} is damaged .*restore it from a copy.*new checkpoint"):
        job_of(spark, Task(str(begun))).start()


def test_what_answers_do_not_depend_on_may_change(begun: Path, spark: SparkSession):
    """And the numbers of a policy: a larger bound changes nothing here, but the state must not be lost."""
    (begun / "out").rename(begun / "moved")
    workers = sp.WorkerOptions(plq_workers=3, wlq_workers=1, splitting="TB_RR")
    other: dict[str, Any] = {"progress": sp.Watermark("20 seconds", max_ahead="2 days"), "output": begun / "moved"}
    finish(job_of(spark, Task(str(begun)), workers=workers, **other))
    (begun / "moved").rename(begun / "out")
    assert_is_complete(begun, FILES)


@pytest.mark.parametrize("way", ["another format", "a function"])
def test_a_sink_may_be_of_another_kind_from_a_start_on(way: str, begun: Path, spark: SparkSession):
    """And late rows may go nowhere; what was written before stays as it is."""
    task, delivered = Task(str(begun)), list[pa.Table]()

    def take(rows: DataFrame, batch_id: int) -> None:
        del batch_id
        delivered.append(rows.toArrow())

    before = parquet_rows(begun / "out")
    output = take if way == "a function" else sp.Directory(str(begun / "out"), "csv")
    assert len(finish(job_of(spark, task, output=output, late=None))) == 3
    since = pa.concat_tables(delivered) if delivered else csv_rows(begun / "out", before.schema)
    assert parquet_rows(begun / "out").equals(before)
    assert since.num_rows > 0
    assert [*windows_of(before), *windows_of(since)] == expected(task.plan, late_rows(9))


def test_partials_that_are_gone_are_named(begun: Path, spark: SparkSession):
    folder = begun / "checkpoint" / "skypane" / "partials"
    shutil.rmtree(folder)
    with pytest.raises(sp.CheckpointError, match=re.escape(f"{folder}/") + ".* is gone.*restore the whole checkpoint"):
        job_of(spark, Task(str(begun))).start()


def test_partials_that_are_damaged_are_named(begun: Path, spark: SparkSession):
    files = sorted((begun / "checkpoint" / "skypane" / "partials").iterdir())
    for path in files:
        bit_flipped(path)
    handle = job_of(spark, Task(str(begun))).start(trigger="available now")
    with pytest.raises(sp.SkypaneError, match=re.escape(f"{files[0].parent}/") + ".* is damaged.*restore the whole"):
        handle.await_termination(PATIENCE)


@pytest.mark.parametrize("lost", [("skypane",), ("offsets", "commits", "sources")], ids=["skypane's", "Spark's"])
def test_one_checkpoint_without_the_other_is_refused(lost: Sequence[str], begun: Path, spark: SparkSession):
    outputs = ("out", "late") if lost == ("skypane",) else ()
    for name in (*(f"checkpoint/{part}" for part in lost), *outputs):
        shutil.rmtree(begun / name)
    handle = job_of(spark, Task(str(begun))).start(trigger="available now")
    with pytest.raises(sp.SkypaneError, match="removed or restored without the other"):
        handle.await_termination(PATIENCE)


def test_a_batch_that_spark_fills_again_is_refused(begun: Path, spark: SparkSession):
    """Spark has lost its record of the last batch, and makes another of it: the same rows and those that came since."""
    for folder in ("offsets", "commits"):
        for name in ("2", ".2.crc"):
            (begun / "checkpoint" / folder / name).unlink()
    handle = job_of(spark, Task(str(begun))).start(trigger="available now")
    with pytest.raises(sp.SkypaneError, match=r"batch 2 is in the ledger with 40 rows.*replays it with 80.*offsets/2"):
        handle.await_termination(PATIENCE)


def test_an_older_checkpoint_beside_a_newer_output_is_refused(begun: Path, spark: SparkSession, tmp_path: Path):
    older = Path(shutil.copytree(begun / "checkpoint", tmp_path / "older"))
    finish(job_of(spark, Task(str(begun))))
    shutil.rmtree(begun / "checkpoint")
    older.rename(begun / "checkpoint")
    with pytest.raises(sp.CheckpointError, match=r"of batches after 3, .*older than the output"):
        job_of(spark, Task(str(begun))).start()


def test_what_lost_tries_have_left_is_removed(begun: Path, spark: SparkSession):
    kept = begun / "checkpoint" / "skypane"
    for name in ("partials", "rejected", "answers"):
        (kept / name / "000000000003-00000-lost.arrow").write_text("lost")
    (epoch,) = (kept / "owner").iterdir()
    for document in ("definition.json", "000000000003.json"):
        (epoch / f"{DRAFT}{document}.0").write_text("half")
    (kept / "ledger" / "000000000002.json~").write_text("an editor's backup")
    (begun / "out" / "_staging" / "part-000000000003-driver.parquet").write_text("lost")
    for number in range(3):
        whole = next((begun / "out").glob("*.parquet"))
        shutil.copy(whole, begun / "out" / f"part-000000000003-{number:05d}.parquet")
    finish(job_of(spark, Task(str(begun))))
    assert_is_complete(begun, FILES)


def test_an_output_has_one_owner(begun: Path, spark: SparkSession, tmp_path: Path):
    job = job_of(spark, Task(str(begun)), checkpoint=str(tmp_path / "another"))
    with pytest.raises(sp.CheckpointError, match=f"{begun / 'out'} holds the output of another query"):
        job.start()


@pytest.mark.parametrize("message", ["the disk is full", "the disk is full " * 20_000], ids=["short", "long"])
def test_a_sink_that_fails_once(message: str, spark: SparkSession, tmp_path: Path):
    batches, taken = late_rows(4), dict[int, pa.Table]()
    failed = threading.Event()

    def take(rows: DataFrame, batch_id: int) -> None:
        taken[batch_id] = rows.toArrow()
        if batch_id == 2 and not failed.is_set():
            failed.set()
            raise OSError(message)

    task = Task(str(tmp_path))
    write_batches(tmp_path / "in", batches)
    handle = job_of(spark, task, output=take).start(trigger="available now")
    with pytest.raises(sp.SkypaneError, match="the disk is full") as error:
        handle.await_termination(PATIENCE)
    assert isinstance(error.value.__cause__, OSError)
    assert handle.status["active"] is False
    assert handle.status["error"].startswith("OSError: the disk is full")
    assert [batch.batch_id for batch in handle.recent_metrics()] == [0, 1]
    assert [batch.batch_id for batch in finish(job_of(spark, task, output=take))] == [2, 3, 4, 5]
    assert windows_of(pa.concat_tables(taken[batch_id] for batch_id in sorted(taken))) == expected(task.plan, batches)


def test_a_source_that_stalls(spark: SparkSession, tmp_path: Path):
    """What is answered meanwhile is what the rows so far complete, and no window more; in the end nothing is missing."""
    task, batches = Task(str(tmp_path)), late_rows(2, batches=3)
    (tmp_path / "in").mkdir()
    arrived: queue.Queue[sp.BatchMetrics] = queue.Queue()
    handle = job_of(spark, task).start(on_batch=arrived.put)
    try:
        assert handle.await_termination(0.5) is False
        assert handle.status["active"]
        assert handle.status["error"] is None
        assert handle.recent_metrics() == []
        for number, batch in enumerate(batches):
            write_batches(tmp_path / "in", [batch], first=number)
            assert arrived.get(timeout=PATIENCE).rows == batch.num_rows
            assert windows_in(tmp_path / "out") == expected(task.plan, batches[: number + 1])
    finally:
        handle.stop()
    assert handle.await_termination(1)
    assert not handle.status["active"]
    answered = windows_in(tmp_path / "out")
    handle.drain()
    whole = windows_in(tmp_path / "out")
    assert 0 < len(answered) < len(whole)
    assert whole == expected(task.plan, [*batches, local.Drain()])


def windows_in(folder: Path) -> list[Window]:
    """Return the windows in an output; none where there is no file yet."""
    return windows_of(parquet_rows(folder)) if any(folder.glob("*.parquet")) else []


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


def message(folder: Path, spark: SparkSession) -> str:
    """Return what a start says that fails."""
    with pytest.raises(sp.SkypaneError) as error:
        finish(job_of(spark, Task(str(folder))))
    return str(error.value)


REMEDY = "restore the whole checkpoint from a copy, or start with a new one"
LOGS = ["offsets/2", "commits/2", "sources/0/1", "sources/0/2"]


@pytest.mark.parametrize("name", [*LOGS, "metadata"])
@pytest.mark.parametrize("damage", [torn, empty, bit_flipped])
def test_a_damaged_file_of_sparks_is_named(name: str, damage: Damage, begun: Path, spark: SparkSession):
    path = begun / "checkpoint" / name
    damage(path)
    assert re.search(f"^{path}, .* is (empty|damaged.*): {REMEDY}$", message(begun, spark))


FOLDERS = {"offsets": "offsets/2", "sources": "sources/0/2", "sources/0": "sources/0/2"}
"""Folders, and the file that is missed first where one is gone."""


@pytest.mark.parametrize("name", [*FOLDERS, "offsets/2", "sources/0/2", "sources/0/1", "metadata"])
def test_what_is_gone_of_sparks_is_named(name: str, begun: Path, spark: SparkSession):
    gone(begun / "checkpoint" / name)
    path = begun / "checkpoint" / FOLDERS.get(name, name)
    assert re.search(f"^{path}, .* is gone: {REMEDY}$", message(begun, spark))


def test_a_ledger_that_is_gone_is_reported_by_the_output(begun: Path, spark: SparkSession):
    gone(begun / "checkpoint" / "skypane" / "ledger")
    said = message(begun, spark)
    assert re.search(r"part-0+[12]-.*parquet .*batches after [01], .*older than the output", said)


def test_a_newest_manifest_that_is_gone_is_missed(begun: Path, spark: SparkSession):
    """By partials that the one before it names and that went with it, or by Spark, which goes on after it."""
    newest = max((begun / "checkpoint" / "skypane" / "ledger").iterdir())
    assert newest.name == "000000000002.json"
    newest.unlink()
    assert re.search("is gone: restore|is gone, and|removed or restored without the other", message(begun, spark))


SPARED = ["commits", "commits/2", "skypane/owner", "skypane/rejected", "skypane/answers"]


@pytest.mark.parametrize("name", ["commits", *(pytest.param(name, marks=pytest.mark.slow) for name in SPARED[1:])])
def test_what_can_be_made_again_may_be_gone(name: str, begun: Path, spark: SparkSession):
    gone(begun / "checkpoint" / name)
    finish(job_of(spark, Task(str(begun))))
    assert windows_of(parquet_rows(begun / "out")) == expected(Task(str(begun)).plan, FILES)


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


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], list[str]]:
    """The folder of a driver (ending_driver.py) that Ctrl-C has stopped, whose Java has died then; what it has said, and logged."""
    folder = tmp_path_factory.mktemp("ended")
    write_batches(folder / "in", late_rows(6, batches=12))
    command = [sys.executable, "-m", "tests.runtime.ending_driver", str(folder)]
    log = folder / "log"
    with log.open("w") as errors, subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": PYTHONPATH}, start_new_session=True, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    ) as process:  # fmt: skip
        watchdog = threading.Timer(2 * PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        watchdog.start()
        assert process.stdin is not None
        assert process.stdout is not None
        said: list[str] = []
        logged: list[str] = []
        for line in process.stdout:
            said.append(line.strip())
            if line == "batch\n" and said.count("batch") == 1:
                logged.append(log.read_text())
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does: every process of the group gets it
            if line == "interrupted\n":
                logged.append(log.read_text().removeprefix(logged[0]))
                shutil.copytree(folder / "checkpoint", folder / "stopped" / "checkpoint")
                process.stdin.write("\n")
                process.stdin.flush()
        watchdog.cancel()
    assert process.returncode == 0, log.read_text()
    return folder, said, [*logged, log.read_text()]


def test_ctrl_c_ends_a_query_after_the_batch_with_one_line(ended: tuple[Path, list[str], list[str]]):
    folder, said, (_, logged, _) = ended
    assert "interrupted" in said
    assert "done" not in said
    assert logged == "interrupted: the query has stopped; the next start resumes it from here\n"
    assert 0 < len(committed(folder / "stopped", late_rows(6, batches=12))) < 12


def test_java_that_dies_is_reported_in_one_sentence(ended: tuple[Path, list[str], list[str]], spark: SparkSession):
    folder, said, (*_, logged) = ended
    # On stdout, as threads of PySpark's have their own say on stderr, at any time.
    sentence = r"(\w+): Spark's Java process does not answer; [^:]*: start the program again[^:]* checkpoint"
    printed = " ".join(said)
    assert re.findall(sentence, printed) == ["wait", "look", "stop", "drain", "start", "state"], (
        printed + logged[-4_000:]
    )
    finish(job_of(spark, Task(str(folder))))
    assert_is_complete(folder, late_rows(6, batches=12))
