"""One start of a stream over Spark Connect, in a process that is forked from one that has loaded everything (forked.py).

Its argument, in JSON, is the address of a server, the name of a query below, a folder whose `in` has the batches, and the
bomb: None, or the victim, the number of the operation, and when.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from tests.runtime import continuous_streams
from tests.runtime.connect_bombs import BombBeside, Bombed
from tests.runtime.connect_driver import LOAD, SKYLINE, job

import skypane as sp

QUERIES: Final = ("skyline", "sums", "continuous")
DONE, FAILED = 0, 3


def main() -> None:
    address, query, folder, bomb = json.loads(sys.argv[1])
    spark = SparkSession.builder.remote(address).create()
    laid = None if bomb is None else BombBeside(bomb[1], bomb[2], victim=bomb[0], client=os.getpid())
    ended = DONE
    try:
        handle = _job(spark, query, Path(folder), laid).start(trigger="available now")
        handle.await_termination()
        if bomb is None:
            handle.drain()
    except sp.SkypaneError:
        traceback.print_exc()
        ended = FAILED
    sys.stderr.flush()
    os._exit(ended)  # without waiting for a server that may be gone


def _job(spark: SparkSession, query: str, folder: Path, bomb: BombBeside | None) -> sp.Job:
    output = Bombed(str(folder / "out"), bomb=bomb)
    if query == "continuous":
        return continuous_streams.job_of(spark, folder, output=output)
    return job(spark, folder, SKYLINE if query == "skyline" else LOAD, output=output)
