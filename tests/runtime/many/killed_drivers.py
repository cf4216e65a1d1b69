"""Drivers of streams that are killed by SIGKILL in the middle of a batch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.checkout import ROOT


def killed_at(line: str, module: str, folder: Path) -> str:
    """Run a driver until it prints a line that begins so, and kill it; return the line.

    Its rows are written then, or its batch is in the ledger, and Spark has not recorded it.
    """
    command = [sys.executable, "-m", module, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as driver:
        assert driver.stdout is not None
        watchdog = threading.Timer(300, os.killpg, (driver.pid, signal.SIGKILL))
        watchdog.start()
        found = next(one for one in driver.stdout if one.startswith(line))
        os.killpg(driver.pid, signal.SIGKILL)
        watchdog.cancel()
    return found


def rows_in_the_end(module: str, folder: Path) -> list[dict[str, Any]]:
    """Run a driver until it has read all; return the rows of all batches."""
    command = [sys.executable, "-m", module, str(folder), "last"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=400)
    tables = [pq.read_table(path) for path in sorted((folder / "out").glob("*.parquet"))]
    rows: list[dict[str, Any]] = pa.concat_tables(tables).to_pylist()
    return rows
