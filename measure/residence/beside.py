"""Shards in processes beside the executors: a task starts each of them, and the driver talks to them over sockets.

    python -m measure.residence.beside FOLDER WINDOW SHARD

is such a process, and reads the key of its connection. It prints its port, and ends when the driver closes the connection.
"""

from __future__ import annotations

import pickle
import secrets
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Client, Listener
from typing import Final

from pyspark.sql import SparkSession

from measure.residence.journal import Journal
from measure.residence.one_trip import OneTripShard, Request, Response

HOST: Final = "127.0.0.1"
"""Where processes listen; local-cluster has all executors on one machine."""


class BesideExecutors:
    """Sends requests to processes, one for each shard; `processes` has their numbers."""

    def __init__(self, spark: SparkSession, journal: Journal, shards: int) -> None:
        key, self.repeated = secrets.token_hex(), 0
        numbers = spark.sparkContext.parallelize(range(shards), shards)
        started = numbers.map(lambda shard: (shard, *start(journal, shard, key))).collect()
        self.processes = [process for _, process, _ in sorted(started)]
        self._connections = [Client((HOST, port), authkey=key.encode()) for _, _, port in sorted(started)]

    def __call__(self, request: Request) -> list[Response]:
        sent = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        for connection in self._connections:
            connection.send_bytes(sent)
        return [connection.recv() for connection in self._connections]

    def close(self) -> None:
        """End the processes."""
        for connection in self._connections:
            connection.close()


def start(journal: Journal, shard: int, key: str) -> tuple[int, int]:
    """Start the process of a shard; return its number and its port."""
    command = [sys.executable, "-m", __name__, journal.folder, str(journal.window), str(shard)]
    process = subprocess.Popen(  # noqa: S603 - this interpreter; it outlives the task
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{key}\n")
    process.stdin.flush()
    return process.pid, int(process.stdout.readline())


def answers(journal: Journal, shard: int, listener: Listener) -> Iterator[int]:
    """Answer the requests of one connection; yield the number of each step."""
    front = OneTripShard.restore(journal.first(shard), journal.window)
    with listener.accept() as connection:
        while True:
            try:
                request: Request = connection.recv()
            except EOFError:
                return
            connection.send(front.answer(request, shard))
            yield request.step


def main() -> None:
    """Be the process of a shard."""
    folder, window, shard = sys.argv[1:]
    with Listener((HOST, 0), authkey=sys.stdin.readline().strip().encode()) as listener:
        print(listener.address[1], flush=True)
        for _ in answers(Journal(folder, int(window)), int(shard), listener):
            pass


if __name__ == "__main__":
    main()
