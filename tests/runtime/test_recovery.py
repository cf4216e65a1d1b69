"""Drivers are killed, files damaged, sinks and workers made to fail: no window is lost, none comes twice."""

from __future__ import annotations

import os
import queue
import random
import re
import shutil
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.parameters import times
from tests.rows import flipped
from tests.runtime.driver import CRASHES, ENDS, SKYLINE, WINDOWS, Task, job_of
from tests.runtime.forked import Parent
from tests.runtime.streams import (
    SECOND,
    NaiveKSlack,
    Window,
    csv_rows,
    expected,
    finish,
    late_rows,
    parquet_rows,
    windows_of,
    write_batches,
)
from tests.stacks import dumped

import skypane as sp
from skypane.operators.skyline import Skyline
from skypane.operators.topk import TopK
from skypane.preference import Score
from skypane.runtime import local
from skypane.runtime.spark.document_store import DRAFT, DocumentStore
from skypane.runtime.spark.engine.ledger import KEEP, Ledger, Manifest

PATIENCE = 180
"""Seconds until a driver that says nothing is taken for hung, and killed, so that the test fails and does not hang."""
GIVEN_UP = "a driver has said nothing for too long"


class Driver:
    """A driver process that starts Spark at once, and each of its tasks on request."""

    def __init__(self, parent: Parent, log: Path, master: str) -> None:
        temporary = log.with_suffix(".tmp")  # a Java that is killed leaves what it has there
        temporary.mkdir()
        self.log = log
        with log.open("wb") as stderr:
            self.process = parent.fork(master, temporary, stderr)
        self._watchdog = self._patience()
        self._is_ready = False

    def _patience(self) -> threading.Timer:
        watchdog = threading.Timer(PATIENCE, self.give_up)
        watchdog.daemon = True
        return watchdog

    def run(self, task: Task) -> None:
        self._watchdog.cancel()
        self._watchdog = self._patience()
        self._watchdog.start()
        self._is_ready = self._is_ready or self.line() == "ready"
        assert self._is_ready, self.errors()
        self.process.stdin.write(f"{task.to_json()}\n")
        self.process.stdin.flush()

    def line(self) -> str:
        """Return what the driver says next; nothing, when it is dead."""
        return self.process.stdout.readline().strip()

    def ended(self) -> str:
        """Wait for the end of the task; return how it ended, or nothing if the driver is dead."""
        while (printed := self.line()) not in ("", *ENDS):
            pass
        self._watchdog.cancel()
        return printed

    def kill(self, *, java_too: bool = True) -> None:
        """Kill the driver: Python, and with `java_too` the virtual machine, which else sees its parent vanish."""
        self._watchdog.cancel()
        if java_too:
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            self.process.kill()

    def give_up(self) -> None:
        """Kill it for what it has not said, and add to its log where it shows what its threads did."""
        threads = dumped(self.process.pid, self.log)
        self.kill()
        with self.log.open("a") as log:
            log.write(f"{GIVEN_UP}: {threads}\n")

    def go_on(self) -> None:
        """Wake a driver that sleeps."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> list[str]:
        """Give it no other task, and wait for its end; return its last output."""
        with suppress(BrokenPipeError):  # it is dead, and has not read its task
            self.process.stdin.close()
        printed = self.process.stdout.read().split()
        self.process.wait()
        self._watchdog.cancel()
        self.process.stdout.close()
        return printed

    @property
    def was_killed(self) -> bool:
        return self.process.returncode == -signal.SIGKILL

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def errors(self) -> str:
        return self.log.read_text()[-4_000:]


AHEAD = 2
"""Drivers that start while one runs."""


LOCAL = "local[1,4]"
"""One core, four attempts for each task."""


class Drivers:
    """Drivers one after the other, the next ones already starting while one runs: a start takes seconds."""

    def __init__(self, folder: Path, module: str = "tests.runtime.driver", master: str = LOCAL) -> None:
        self._folder = folder
        self._parent = Parent(module)
        self._master = master
        self._made = 0
        self._ready = deque([self._start()])

    def take(self, task: Task, *, left: int = AHEAD) -> Driver:
        """Let the next driver run; `left` drivers are to follow."""
        driver = self._ready.popleft() if self._ready else self._start()
        driver.run(task)
        while len(self._ready) < min(left, AHEAD):
            self._ready.append(self._start())
        return driver

    def _start(self) -> Driver:
        self._made += 1
        return Driver(self._parent, self._folder / f"{self._made}.log", self._master)

    def close(self) -> None:
        for driver in self._ready:
            if driver.is_alive:
                driver.kill()
                driver.end()
        self._parent.close()


@pytest.fixture
def drivers(spark: SparkSession, tmp_path: Path) -> Iterator[Drivers]:
    del spark  # only one session at a time need start at leisure
    started = Drivers(tmp_path)
    yield started
    started.close()


class Survivors:
    """One driver after the other, each for as many tasks as it lives: most of a short task's time is the start of Spark."""

    def __init__(self, folder: Path) -> None:
        self._drivers = Drivers(folder)
        self._driver: Driver | None = None

    def take(self, task: Task) -> Driver:
        if self._driver is None or not self._driver.is_alive:
            self._driver = self._drivers.take(task, left=0)
        else:
            self._driver.run(task)
        return self._driver

    def close(self) -> None:
        if self._driver is not None and self._driver.is_alive:
            self._driver.end()
        self._drivers.close()


@pytest.fixture(scope="module")
def survivors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survivors]:
    started = Survivors(tmp_path_factory.mktemp("survivors"))
    yield started
    started.close()


@pytest.mark.slow
def test_many_kills_at_random_moments(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    kill_at_random(drivers, spark, tmp_path, kills=times(25), seed=100)


@pytest.mark.slow
def test_kills_at_random_moments_of_a_cluster(spark: SparkSession, tmp_path: Path):
    """Executors are processes of their own, which may outlive their driver for a while."""
    drivers = Drivers(tmp_path, master="local-cluster[2,1,512]")
    try:
        kill_at_random(drivers, spark, tmp_path, kills=times(8), seed=21)
    finally:
        drivers.close()


def kill_itself(drivers: Drivers, task: Task, left: int) -> None:
    """Let a driver run a task, in which it dies; `left`: how many come after it."""
    driver = drivers.take(task, left=left)
    printed = driver.end()
    assert driver.was_killed, f"{task.crash}: {printed}, {driver.errors()}"


def in_a_drain(crashes: Iterable[str]) -> list[str]:
    """Return the places at which a driver can die while it drains, which is none of Spark's batches."""
    return [crash for crash in crashes if crash != "before Spark commits"]


def kill_during_drains(
    drivers: Drivers, task: Task, crashes: Sequence[str], files: Sequence[pa.Table]
) -> list[local.Event]:
    """Let each driver take a file, and die while it drains; return what the stream has received."""
    events = list[local.Event]()
    for number, (crash, file) in enumerate(zip(crashes, files, strict=True)):
        write_batches(Path(task.folder) / "in", [file], first=number)
        kill_itself(drivers, replace(task, crash=crash, drain=True), len(crashes) - 1 - number)
        events += [file, local.Drain()]
    return events


def kill_each(drivers: Drivers, task: Task, kills: int, chance: random.Random, check: Callable[[], None]) -> None:
    """Let driver after driver run a task, and kill each at some moment; `check` what it has left behind."""
    killed: list[Driver] = []
    for number in range(kills):
        driver = drivers.take(task, left=kills - 1 - number)
        for _ in range(chance.randrange(7)):  # two batches say six lines
            assert driver.line() in ("sink", "commit", "batch"), driver.errors()
        time.sleep(chance.uniform(0, 0.3))  # not to wait for anything: the moment of the kill is the experiment
        # Without its virtual machine too: that one may work on for a while, beside the next driver.
        driver.kill(java_too=chance.random() < 0.7)
        driver.process.wait()
        killed.append(driver)
        check()
    assert not any("done" in driver.end() for driver in killed)
    assert sum(driver.was_killed for driver in killed) == kills


def kill_at_random(drivers: Drivers, spark: SparkSession, folder: Path, kills: int, seed: int) -> None:
    """Kill `kills` drivers of one stream, each while it runs; let a last one end it; compare with the oracle."""
    chance = random.Random(seed)
    task, stream = Task(str(folder)), Stream(folder, late_rows(seed, batches=5 * kills // 2))
    kill_each(drivers, task, kills, chance, lambda: stream.assert_is_a_start(task))
    stream.note(finish(job_of(spark, task)))  # more batches than the ledger keeps, perhaps
    stream.assert_is_complete(task)


class Stream:
    """The files of a stream, and what must have become of them.

    A driver that dies after Spark has noted a new file, and before it has noted the batch, leaves it to the next batch,
    which then has two. So batches are what the ledger says they are, and the oracle answers those.
    """

    def __init__(self, folder: Path, files: Sequence[pa.Table], *, write: bool = True) -> None:
        self._folder = folder
        self._files = files
        self._kept = DocumentStore.at(f"{folder}/checkpoint").child("skypane")
        #: the rows of each batch that has been committed
        self._rows: dict[int, int] = {}
        if write:
            write_batches(folder / "in", files)

    def batches(self) -> list[pa.Table]:
        """Return the batches that have been committed."""
        self._rows |= {metrics["batch_id"]: metrics["rows"] for metrics in Ledger(self._kept).history(KEEP)}
        assert sorted(self._rows) == list(range(len(self._rows)))
        all_rows = pa.concat_tables(self._files)
        ends = list(accumulate(self._rows[batch_id] for batch_id in sorted(self._rows)))
        return [all_rows.slice(start, end - start) for start, end in pairwise([0, *ends])]

    def note(self, metrics: Sequence[sp.BatchMetrics]) -> None:
        """Take note of batches that have been committed."""
        self._rows |= {batch.batch_id: batch.rows for batch in metrics}

    def assert_is_a_start(self, task: Task) -> None:
        """The output at any moment: what has been committed, and at most one batch more, whole windows in order."""
        if not any((self._folder / "out").glob("*.parquet")):
            return
        answered = windows_of(parquet_rows(self._folder / "out"))
        batches = self.batches()
        committed = expected(task.plan, batches) if batches else []
        assert answered[: len(committed)] == committed
        starts = [start for start, _ in answered]
        assert starts == sorted(set(starts))

    def assert_is_complete(self, task: Task) -> None:
        """Output, late rows, counts and files are those of a stream that nothing has disturbed."""
        batches = self.batches()
        assert sum(batch.num_rows for batch in batches) == sum(file.num_rows for file in self._files)
        assert windows_of(parquet_rows(self._folder / "out")) == expected(task.plan, batches)
        naive = NaiveKSlack(WINDOWS.longest_pane)
        for batch in batches:
            naive.take(batch)
        assert sorted(parquet_rows(self._folder / "late")["id"].to_pylist()) == sorted(naive.late)
        last = Ledger(self._kept).history(1)[0]
        assert last["dropped_rows"] == len(naive.late) > 0
        assert last["seen_rows"] == sum(file.num_rows for file in self._files)
        assert_nothing_left_over(self._folder)


def assert_nothing_left_over(folder: Path) -> None:
    kept = DocumentStore.at(f"{folder}/checkpoint").child("skypane")
    manifest = Ledger(kept).latest()
    assert manifest is not None
    named = {ref[0] for refs in manifest.operator["panes"].values() for ref in refs}
    assert set(kept.child("partials").names()) == named
    assert not kept.child("rejected").names()
    assert not kept.child("answers").names()
    assert [list(epoch.iterdir()) for epoch in Path(kept.child("owner").root).iterdir()] == [[]]
    for output in ("out", "late"):
        assert not [path for path in (folder / output / "_staging").rglob("*") if path.is_file()]


@pytest.mark.slow
def test_kills_at_exact_places(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    files = late_rows(5, batches=18)
    write_batches(tmp_path / "in", files[:4])
    task, stream = Task(str(tmp_path)), Stream(tmp_path, files, write=False)
    finish(job_of(spark, task))
    write_batches(tmp_path / "in", files[4:], first=4)
    for number, crash in enumerate(CRASHES, 1):
        kill_itself(drivers, Task(str(tmp_path), crash), len(CRASHES) - number)
        stream.assert_is_a_start(task)
    finish(job_of(spark, task))
    stream.assert_is_complete(task)


def test_rows_that_are_held_survive_kills(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    kill_while_rows_are_held(drivers, spark, tmp_path, [(None, "after the sink", None)])


@pytest.mark.slow
def test_rows_that_are_held_survive_kills_at_exact_places(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    removing = "while partials are removed"  # which only a batch does that answers windows
    crashes = [(crash,) * 3 for crash in CRASHES if crash != removing]
    kill_while_rows_are_held(drivers, spark, tmp_path, [*crashes, (None, None, removing)])


def kill_while_rows_are_held(
    drivers: Drivers, spark: SparkSession, folder: Path, crashes: Sequence[tuple[str | None, ...]]
) -> None:
    """Kill drivers in the batch that holds rows of a wrong clock, in the one that gives them up, and in the one in which
    the stream follows those that came first after a pause; nothing is lost, and nothing comes twice.
    """
    task, left = Task(str(folder), patience=30), sum(crash is not None for each in crashes for crash in each)
    files: list[pa.Table] = []
    held: list[int] = []

    def take(batch: pa.Table, crash: str | None) -> None:
        nonlocal left
        write_batches(folder / "in", [batch], first=len(files))
        files.append(batch)
        if crash is not None:
            left -= 1
            kill_itself(drivers, replace(task, crash=crash), left)
        finish(job_of(spark, task))
        (last,) = Ledger(DocumentStore.at(f"{folder}/checkpoint").child("skypane")).history(1)
        assert last["batch_id"] == len(files) - 1
        held.append(last["held_rows"])
        assert last["totals"]["read"] == sum(batch.num_rows for batch in files), (
            "a batch that came again is counted once"
        )

    drawn = late_rows(9, batches=1 + 4 * len(crashes))
    take(drawn[0], None)
    for number, (holding, giving_up, following) in enumerate(crashes):
        goes_on, gives_up, pauses, follows = drawn[1 + 4 * number : 5 + 4 * number]
        take(ahead(ahead(goes_on, number * WEEK), 500 * WEEK, slice(2)), holding)
        take(ahead(gives_up, number * WEEK), giving_up)
        take(ahead(ahead(pauses, number * WEEK), WEEK, slice(20, 40)), None)
        take(ahead(follows, (number + 1) * WEEK), following)
    assert held == [0, *[2, 0, 20, 0] * len(crashes)]
    assert windows_of(parquet_rows(folder / "out")) == expected(task.plan, files)
    rejected = [rows for outcome in local.run(task.plan, files) for rows in outcome.rejection.rows]
    assert reasons(parquet_rows(folder / "late")) == sum(map(reasons, rejected), Counter())
    assert sum(reason == "future" for _, reason in reasons(parquet_rows(folder / "late"))) == 2 * len(crashes)
    assert_nothing_left_over(folder)


WEEK = 7 * 86_400 * SECOND
EVERY = slice(None)


def ahead(batch: pa.Table, by: int, rows: slice = EVERY) -> pa.Table:
    """Return a batch with the times of these rows `by` later."""
    times = batch["ts"].cast(pa.int64()).to_numpy().copy()
    times[rows] += by
    return batch.set_column(1, "ts", pa.array(times, batch.schema.field("ts").type))


def reasons(rejected: pa.Table) -> Counter[tuple[int, str]]:
    return Counter(zip(rejected["id"].to_pylist(), rejected["reason"].to_pylist(), strict=True))


@pytest.mark.slow
def test_kills_during_a_drain(drivers: Drivers, spark: SparkSession, tmp_path: Path):
    """Each driver takes a batch, and is killed while it drains; the next one finishes that first."""
    drawn = late_rows(7, batches=3 * len(CRASHES))[::3]  # so that some rows come too late after a drain, not all
    task, crashes = Task(str(tmp_path)), in_a_drain(CRASHES)
    files = [ahead(batch, 500 * WEEK, slice(2)) for batch in drawn[: len(crashes)]]  # and two clocks are wrong
    events = kill_during_drains(drivers, task, crashes, files)
    finish(job_of(spark, task))
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, events)
    late = [row for outcome in local.run(task.plan, events) for rows in outcome.rejection.rows for row in rows["id"]]
    assert sorted(parquet_rows(tmp_path / "late")["id"].to_pylist()) == sorted(row.as_py() for row in late)
    put_aside = Counter(parquet_rows(tmp_path / "late")["reason"].to_pylist())
    assert put_aside["future"] == 2 * len(crashes) < put_aside.total()
    assert_nothing_left_over(tmp_path)


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


def test_a_worker_that_dies_is_replaced(survivors: Survivors, tmp_path: Path):
    task, stream = Task(str(tmp_path), deadly=True), Stream(tmp_path, late_rows(6))
    driver = survivors.take(task)
    assert driver.ended() == "done", driver.errors()
    assert (tmp_path / "killed").exists()
    stream.assert_is_complete(task)


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


@pytest.fixture(scope="module")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a task that has come to the end of its five batches."""
    folder = tmp_path_factory.mktemp("run")
    write_batches(folder / "in", late_rows(9, batches=5))
    finish(job_of(spark, Task(str(folder))))
    return folder


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "query": ({"query": TopK(3, Score.of("price"), ("sensor",))}, r"query\.query was 'skyline', is 'top_k'"),
    "preference": ({"query": Skyline(sp.low("price") & sp.high("rating"), ("sensor",))}, r"query\.levels was "),
    "groups": ({"query": Skyline(SKYLINE.preference)}, r"query\.by was \['sensor'\], is \[\]"),
    "slide": ({"slide": "10 s"}, r"window\.slide was 20000000, is 10000000"),
    "length": ({"window": "70 s"}, r"window\.length was 50000000, is 70000000"),
    "offset": ({"window": replace(WINDOWS, offset=5), "slide": None}, r"window\.offset was 0, is 5"),
    "time": ({"time": "sent"}, r"time was 'ts', is 'sent'"),
    "source": ({"source": "sensor"}, r"source was None, is 'sensor'"),
    "policy": ({"progress": sp.Watermark("1 minute")}, r"progress\.policy was 'KSlack', is 'Watermark'"),
}


@pytest.mark.parametrize(("changed", "difference"), OTHERS.values(), ids=OTHERS.keys())
def test_a_checkpoint_of_another_job_is_refused(
    changed: dict[str, Any], difference: str, run: Path, spark: SparkSession
):
    job = job_of(spark, Task(str(run)), **changed)
    with pytest.raises(sp.CheckpointError, match=f"belongs to another query.*{difference}.*another checkpoint"):
        job.start()


def copied(run: Path, target: Path) -> Path:
    """Return a copy of a task's folder, to be looked at: Spark's part of a checkpoint needs its source where it was."""
    return Path(shutil.copytree(run, target / "run"))


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda whole: whole[: len(whole) // 2],
    "empty": lambda _: b"",
    "garbage": lambda _: b"\xff\x00garbage",
    "a list": lambda _: b"[]",
    "without fields": lambda _: b"{}",
}


@pytest.mark.parametrize("document", ["definition.json", "ledger/000000000004.json"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_document_is_named(
    document: str, damage: Callable[[bytes], bytes], run: Path, spark: SparkSession, tmp_path: Path
):
    folder = copied(run, tmp_path)
    path = folder / "checkpoint" / "skypane" / document
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(sp.CheckpointError, match=f"{path} is damaged .*restore it from a copy.*new checkpoint"):
        job_of(spark, Task(str(folder))).start()


@pytest.fixture
def begun(spark: SparkSession, tmp_path: Path) -> Path:
    """The folder of a task of six batches that has been stopped after the third."""
    batches = late_rows(9)
    write_batches(tmp_path / "in", batches[:3])
    finish(job_of(spark, Task(str(tmp_path))))
    write_batches(tmp_path / "in", batches[3:], first=3)
    return tmp_path


def test_what_answers_do_not_depend_on_may_change(begun: Path, spark: SparkSession):
    """And the numbers of a policy: a larger bound changes nothing here, but the state must not be lost."""
    (begun / "out").rename(begun / "moved")
    finish(
        job_of(
            spark,
            Task(str(begun)),
            workers=sp.WorkerOptions(plq_workers=3, wlq_workers=1, splitting="TB_RR"),
            progress=sp.KSlack("2 days"),
            output=begun / "moved",
        )
    )
    (begun / "moved").rename(begun / "out")
    Stream(begun, late_rows(9), write=False).assert_is_complete(Task(str(begun)))


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
        whole = path.read_bytes()
        path.write_bytes(flipped(whole, 4 * len(whole)))
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


@pytest.mark.parametrize(
    ("sleep", "late"),
    [
        ("asleep before a file moves into the output", True),
        pytest.param("asleep before the commit", False, marks=pytest.mark.slow),
    ],
)
def test_a_second_driver_takes_over(sleep: str, late: bool, survivors: Survivors, spark: SparkSession, tmp_path: Path):
    """The first one sleeps in the middle of a batch; when it wakes, it says why it ends, and has changed nothing."""
    files = late_rows(5, batches=5)
    write_batches(tmp_path / "in", files)
    task = Task(str(tmp_path), sleep, late=late)
    first = survivors.take(task)
    while (printed := first.line()) != "asleep":
        assert printed, first.errors()
    finish(job_of(spark, task))
    whole = windows_of(parquet_rows(tmp_path / "out"))
    assert whole == expected(task.plan, files)
    first.go_on()
    assert first.ended() == "failed"
    assert "another driver has started on the checkpoint" in first.errors()
    assert windows_of(parquet_rows(tmp_path / "out")) == whole
    assert finish(job_of(spark, task)) == []
    assert_nothing_left_over(tmp_path)


def test_ctrl_c_ends_a_query_after_the_batch_with_one_line(survivors: Survivors, spark: SparkSession, tmp_path: Path):
    task, stream = Task(str(tmp_path)), Stream(tmp_path, late_rows(6, batches=12))
    driver = survivors.take(task)
    while driver.line() != "batch":
        assert driver.is_alive, driver.errors()
    before = driver.errors()
    os.killpg(driver.process.pid, signal.SIGINT)  # as a terminal does: every process of the group gets it
    assert driver.ended() == "interrupted", driver.errors()
    assert driver.end() == []
    assert driver.process.returncode == 0
    assert driver.errors().removeprefix(before) == (
        "interrupted: the query has stopped; the next start resumes it from here\n"
    )
    stream.assert_is_a_start(task)
    assert len(stream.batches()) < 12
    finish(job_of(spark, task))
    stream.assert_is_complete(task)


def test_a_hung_driver_leaves_the_stacks_of_its_threads(survivors: Survivors, tmp_path: Path):
    task = Task(str(tmp_path), "asleep before the commit")
    write_batches(tmp_path / "in", late_rows(6))
    driver = survivors.take(task)
    while (printed := driver.line()) != "asleep":
        assert printed, driver.errors()
    driver.give_up()
    assert driver.end() == []
    assert driver.was_killed
    threads = driver.log.with_suffix(".threads")
    assert driver.errors().endswith(f"{GIVEN_UP}: {threads}\n")
    written = threads.read_text()
    assert 'driver.py", line' in written
    assert "in sleep" in written
    assert "stream execution thread for" in written
    assert "JNI global refs" in written


def test_java_that_dies_is_reported_in_one_sentence(survivors: Survivors, spark: SparkSession, tmp_path: Path):
    stream = Stream(tmp_path, late_rows(6))
    driver = survivors.take(Task(str(tmp_path), java=True))
    printed = " ".join(driver.end())  # to stdout, as threads of PySpark's have their own say on stderr, at any time
    delivered = re.findall(
        r"(\w+): Spark's Java process does not answer; [^:]*: start the program again[^:]* checkpoint", printed
    )
    assert delivered == ["wait", "look", "stop", "drain", "start", "state"], printed + driver.errors()
    finish(job_of(spark, Task(str(tmp_path))))
    stream.assert_is_complete(Task(str(tmp_path)))


@pytest.mark.slow
def test_a_stateful_operator_survives_a_kill_between_the_two_commits(
    drivers: Drivers, spark: SparkSession, tmp_path: Path
):
    files = late_rows(5, batches=4, start=1_000 * SECOND)  # Spark drops what lies before 1970
    write_batches(tmp_path / "in", files[:2])
    task = Task(str(tmp_path), "before Spark commits", unique=True)
    driver = drivers.take(task, left=0)
    assert "done" not in driver.end()
    assert driver.was_killed, driver.errors()
    write_batches(tmp_path / "in", [files[2], pa.concat_tables([files[1], files[3]])], first=2)
    finish(job_of(spark, task))
    batches = Stream(tmp_path, files, write=False).batches()
    assert [batch.num_rows for batch in batches if batch.num_rows] == [40] * 4, "what came again was dropped"
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(task.plan, batches)


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
    Stream(begun, late_rows(9), write=False).assert_is_complete(Task(str(begun)))


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
