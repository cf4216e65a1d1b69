"""`skypane top` beside a job: a ledger that a driver writes, and jobs that start, run and end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest
from tests.cli.streams import DAILY, put
from tests.reporting.made import hourly
from tests.stores.memory import in_memory

from skypane.cli.main import main
from skypane.metrics import BatchMetrics
from skypane.reporting.runlog import RunLog
from skypane.reporting.watching import view_from
from skypane.runtime.spark.committed_batches import CommittedBatches
from skypane.runtime.spark.document_store import DocumentStore
from skypane.runtime.spark.engine.ledger import Ledger, Manifest
from skypane.runtime.spark.engine.query_definition import QueryDefinition

RUNS = """
import sys
from pathlib import Path
from skypane.reporting.runlog import RunLog
log = RunLog(Path(sys.argv[1]))
log.begin({})
with log.running():
    print("runs", flush=True)
    sys.stdin.read()
"""


def driver(checkpoint: str | Path) -> Ledger:
    """Return the ledger of a driver that has started."""
    ledger = Ledger(DocumentStore.at(checkpoint).child("skypane"))
    ledger.claim(QueryDefinition({"query": "offers"}))
    return ledger


def commit(ledger: Ledger, batches: tuple[BatchMetrics, ...]) -> None:
    for metrics in batches:
        ledger.commit(Manifest(metrics.batch_id, {}, {}, {}, {}, metrics.to_json(), 0))


@pytest.mark.parametrize("place", ["disk", "object store"])
def test_each_batch_is_seen_once_and_those_that_are_gone_never(tmp_path: Path, place: str):
    checkpoint = str(tmp_path / "checkpoint") if place == "disk" else "s3://bucket/checkpoint"
    with in_memory():
        seen = CommittedBatches(checkpoint)
        assert seen.new() == []  # there is no checkpoint yet
        ledger, batches = driver(checkpoint), hourly(130)
        assert seen.new() == []
        commit(ledger, batches[:3])
        assert seen.new() == list(batches[:3])
        commit(ledger, batches[3:])
        rest = seen.new()
        assert rest == list(batches[-len(rest) :])
        assert 100 <= len(rest) <= 120  # the ledger keeps a hundred, in an object store some more
        assert seen.new() == []
        assert CommittedBatches(checkpoint).new() == rest


def test_nothing_in_the_checkpoint_is_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    checkpoint = tmp_path / "checkpoint"
    commit(driver(checkpoint), hourly(2))
    log = RunLog(tmp_path / "checkpoint-metrics")
    log.begin({})
    with log.running():
        pass
    there = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert main(["top", str(checkpoint)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(checkpoint)
    assert "(200 read, batch 1)" in lines[1]
    assert "answered 2 windows" in lines[1]
    assert lines[2:] == ["`skypane run` is not running the job"]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == there


@contextmanager
def that_ends(folder: Path) -> Iterator[Callable[[], None]]:
    """Be a job with its log in a folder; yield what ends it."""
    log = RunLog(folder)
    log.begin({})
    with ExitStack() as job:
        job.enter_context(log.running())
        yield job.close


@contextmanager
def that_is_killed(folder: Path) -> Iterator[Callable[[], None]]:
    with subprocess.Popen(
        [sys.executable, "-c", RUNS, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as job:
        assert job.stdout is not None
        job.stdout.readline()
        yield job.kill


@contextmanager
def watching(*words: str, folder: Path, remote: str = "") -> Iterator[IO[str]]:
    """Watch a job that ends meanwhile; yield what the command writes."""
    with subprocess.Popen(
        [sys.executable, "-m", "skypane", "top", *words],
        stdout=subprocess.PIPE, text=True, cwd=folder, env=os.environ | ({"SPARK_REMOTE": remote} if remote else {}),
    ) as top:  # fmt: skip
        assert top.stdout is not None
        try:
            yield top.stdout
        except BaseException:
            top.kill()  # the job has not ended
            raise
    assert top.returncode == 0


@pytest.mark.parametrize("job", [that_ends, that_is_killed])
def test_the_table_ends_with_the_job_however_that_ends(
    tmp_path: Path, job: Callable[[Path], AbstractContextManager[Callable[[], None]]]
):
    """The watcher is there first; the last batch is committed before the job ends, and is therefore shown."""
    checkpoint = tmp_path / "checkpoint"
    ledger = driver(checkpoint)
    commit(ledger, hourly(1))
    with job(Path(f"{checkpoint}-metrics")) as end, watching(str(checkpoint), folder=tmp_path) as shown:
        assert shown.readline() == f"{checkpoint}\n"
        assert "batch 0" in shown.readline()
        commit(ledger, hourly(2)[1:])
        end()
        rest = shown.read().splitlines()
    assert "batch 1" in rest[-2]
    assert rest[-1] == "the job has ended"


def test_the_mark_of_a_job_on_a_server_is_in_the_working_folder(tmp_path: Path):
    """Beside the checkpoint is the one of an earlier run without the server, which says nothing of this one."""
    job = tmp_path / "job.yaml"
    job.write_text(DAILY.format(folder=tmp_path / "there"))
    commit(driver(tmp_path / "there" / "checkpoint"), hourly(1))
    with that_ends(tmp_path / "there" / "checkpoint-metrics") as end:
        end()
    with (
        that_ends(tmp_path / "checkpoint-metrics") as end,
        watching(str(job), "--remote", "sc://host", folder=tmp_path) as by_option,
        watching(str(job), folder=tmp_path, remote="sc://host") as by_variable,
    ):
        for shown in (by_option, by_variable):
            assert [shown.readline(), "batch 0" in shown.readline()] == ["prices\n", True]
        end()
        for shown in (by_option, by_variable):
            assert shown.read().splitlines()[-1] == "the job has ended"


def test_whether_a_job_runs_is_not_known_without_a_mark(tmp_path: Path):
    log = RunLog(tmp_path / "log")
    states = [log.is_running]
    log.begin({})
    states.append(log.is_running)
    with log.running(), log.running():
        states.append(log.is_running)
    assert [*states, log.is_running] == [None, None, True, False]


def test_an_error_within_a_run_is_not_taken_for_one_of_its_mark(tmp_path: Path):
    log = RunLog(tmp_path)
    with pytest.raises(BrokenPipeError), log.running():
        raise BrokenPipeError


def test_counts_begin_with_the_oldest_batch_that_is_kept():
    view = view_from("offers", hourly(10)[4:])
    assert (view.title, view.read, view.windows) == ("offers, from batch 4 on", 1000, 6)
    assert view_from("offers", ()).latest is None


def test_another_folder_than_a_checkpoint_and_a_job_without_one_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["top", str(tmp_path)]) == 1
    assert "is not a checkpoint of skypane: it has no folder 'skypane'" in capsys.readouterr().err
    job = tmp_path / "job.yaml"
    job.write_text(
        "name: a\nsource: {format: rate}\nquery: {kind: skyline, preference: value MAX}\n"
        "window: {time: timestamp, length: 1 second}\noutput: {format: console}\n"
    )
    assert main(["top", str(job)]) == 1
    assert "checkpoint is missing in a" in capsys.readouterr().err
    assert main(["top", "j" * 5_000]) == 1  # a name that no file can have
    assert "cannot read the job file j" in capsys.readouterr().err


@pytest.mark.usefixtures("spark")
def test_a_real_job_is_shown_by_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    put(tmp_path, [{"at": f"2025-01-{day:02} 17:00:00Z", "stock": "a", "price": day} for day in range(1, 8)])
    job = tmp_path / "job.yaml"
    job.write_text(DAILY.format(folder=tmp_path))
    assert main(["run", str(job)]) == 0
    ran = [line.partition("] ")[2] for line in capsys.readouterr().out.splitlines() if "slack" in line]
    assert main(["top", str(job)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "prices"
    assert lines[1].partition("] ")[2] == ran[-1]
    assert lines[-1] == "`skypane run` is not running the job"
