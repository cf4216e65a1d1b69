"""A stream of Spark whose checkpoint is on this disk and whose outputs are in a bucket, which its Python workers write, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.checkout import PYTHONPATH, ROOT
from tests.runtime.driver import Task
from tests.runtime.streams import NaiveWatermark, expected, late_rows, parquet_rows, windows_of, write_batches
from tests.servers import s3
from tests.servers.s3 import BUCKET
from tests.stores.streams import copied

from skypane.runtime.spark.document_store import DocumentStore


def driven(folder: Path, last: int) -> int:
    """Run a driver that dies after batch `last`; return how it ended."""
    bucket, environment = f"s3a://{BUCKET}/{folder.name}", os.environ | {"PYTHONPATH": PYTHONPATH}
    command = [sys.executable, "-m", "tests.runtime.bucket_driver", str(folder), bucket, str(last)]
    with (folder / "driver.log").open("ab") as log:
        return subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False).returncode


@pytest.mark.slow
def test_a_stream_into_a_bucket_answers_each_row_once_across_kills(tmp_path: Path):
    batches, task = late_rows(11, batches=6), Task(str(tmp_path))
    write_batches(tmp_path / "in", batches)
    with s3.running() as port, s3.connected(port):
        ends = [driven(tmp_path, last) for last in (1, 3, -1)]
        assert ends == [-signal.SIGKILL, -signal.SIGKILL, 0], (tmp_path / "driver.log").read_text()[-3_000:]
        copied(DocumentStore.at(f"s3://{BUCKET}/{tmp_path.name}"), tmp_path / "bucket")
    assert windows_of(parquet_rows(tmp_path / "bucket" / "out")) == expected(task.plan, batches)
    naive = NaiveWatermark(task.plan.windows.longest_pane)
    for batch in batches:
        naive.take(batch)
    late = parquet_rows(tmp_path / "bucket" / "late")
    assert Counter(late["reason"].to_pylist()) == {"late": len(naive.late)}
    assert sorted(late["id"].to_pylist()) == sorted(naive.late) != []
