"""A live stream that pauses, for test_pace; as a program of its own: `python -m tests.runtime.pace_driver FOLDER` is killed in a pause."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final
from unittest.mock import patch

from pyspark.sql import SparkSession

import skypane as sp
from skypane.control.pace import Pace
from skypane.runtime.spark.batch_lifecycle import BatchLifecycle

PER_SECOND: Final = 20
LONG: Final = Pace(longest=3_600)
"""Pauses that last until the next window, however long that takes."""
TIMEOUT: Final = 300


def live_job(spark: SparkSession, folder: Path, window: str) -> sp.Job:
    """Return a job that counts rows with the current time, numbered from 0, by windows."""
    return sp.stream(
        spark.readStream.format("rate").option("rowsPerSecond", PER_SECOND).option("numPartitions", 1).load(),
        sp.Aggregate(n=sp.count(), first=sp.min("value"), last=sp.max("value")),
        time="timestamp",
        window=window,
        progress=sp.Watermark("0 seconds"),
        checkpoint=folder / "checkpoint",
        output=folder / "out",
    )


class LiveStream:
    """A running live job."""

    def __init__(self, job: sp.Job, policy: Pace = LONG) -> None:
        self.seen: list[sp.BatchMetrics] = []
        self._changed = threading.Condition()
        with patch("skypane.runtime.spark.job.paced", lambda when: policy if when is None else None):
            self.handle = job.start(on_batch=self._see)

    def _see(self, batch: sp.BatchMetrics) -> None:
        with self._changed:
            self.seen.append(batch)
            self._changed.notify_all()

    def wait_for_windows(self, windows: int) -> None:
        """Return when so many windows have been answered after a pause."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._answered() >= windows, TIMEOUT), self.seen

    def _answered(self) -> int:
        paused = [batch.pause > 0 for batch in self.seen]
        return sum(one.windows for one in self.seen[paused.index(True) + 1 :]) if any(paused) else 0

    def wait_for_pause(self) -> None:
        """Return when the query pauses."""
        lifecycle = self.handle._lifecycle
        assert isinstance(lifecycle, BatchLifecycle)
        for _ in range(TIMEOUT * 100):
            if "_rest_of_pause" in lifecycle.doing and self.handle._engine.pause > 60:  # type: ignore[attr-defined]
                return
            self.handle.await_termination(0.01)
        raise AssertionError(f"no pause: {self.seen}")


def main() -> None:
    """Run the stream until it pauses, and die."""
    stream = LiveStream(live_job(sp.session("local[2]"), Path(sys.argv[1]), "7 days"))
    stream.wait_for_pause()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
