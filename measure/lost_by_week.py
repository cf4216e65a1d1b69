"""Flights that watermark delays and a drop budget lose in each week of a year, and how long their answers take.

    python -m measure.lost_by_week [--docs docs] [--weeks 52]

The departures of a year arrive as files of six hours, in the order in which the planes left; the event time is the
scheduled departure. Spark counts the flights of each hour with withWatermark, and skypane with its default budget, over the
same files in one session on this machine. A flight is lost if the answer for its hour came without it. Time is that of the
replayed year: an answer comes when the file has been read that completes it. Draws the picture into the folder of --docs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

import skypane as sp
from measure.tables import markdown_table
from skypane.datasets.flights import departures
from skypane.reporting.plot_style import PLAIN
from skypane.types import FloatArray

BEGIN: Final = datetime(2013, 1, 1, tzinfo=UTC)
FILE: Final = timedelta(hours=6)
WEEK: Final = timedelta(weeks=1)
BUDGET: Final = 0.01
DELAYS: Final = ("30 minutes", "3 hours")
SKYPANE: Final = f"skypane, at most {BUDGET:.0%}"
HOUR: Final = "1 hour"
ANSWER: Final = ("hour", "flights")


@dataclass
class Clock:
    """The time of the replayed year."""

    now: datetime = BEGIN


@dataclass
class Answers:
    """What a query has answered: for each hour its flights, and the hours from its end to the answer."""

    clock: Clock
    flights: dict[datetime, int] = field(default_factory=dict)
    waits: dict[datetime, float] = field(default_factory=dict)

    def keep(self, rows: DataFrame, _batch_id: int) -> None:
        """Keep the rows of a batch, with the columns of ANSWER."""
        for row in rows.toArrow().to_pylist():
            hour = row["hour"]
            self.flights[hour] = row["flights"]
            self.waits[hour] = (self.clock.now - hour) / timedelta(hours=1) - 1


@dataclass(frozen=True)
class Year:
    """Of one way, for each week: the share of flights lost, and the mean hours from the end of an hour to its answer."""

    lost: FloatArray
    waits: FloatArray
    share: float
    """The share of all flights that was lost."""


def by_week(true: dict[datetime, int], answers: Answers) -> Year:
    """Return the weeks of those hours that were answered: the last ones of a stream are not."""
    weeks = 1 + max((hour - BEGIN) // WEEK for hour in answers.flights)
    departed, counted, waited, hours = np.zeros((4, weeks))
    for hour, flights in answers.flights.items():
        week = (hour - BEGIN) // WEEK
        departed[week] += true[hour]
        counted[week] += flights
        waited[week] += answers.waits[hour]
        hours[week] += 1
    lost = departed - counted
    return Year(lost / departed, waited / hours, float(lost.sum() / departed.sum()))


def of_spark(arriving: DataFrame, delay: str, answers: Answers, checkpoint: Path) -> StreamingQuery:
    """Start Spark's own count of the flights of each hour."""
    return (
        arriving.withWatermark("scheduled", delay)
        .groupBy(sf.window("scheduled", HOUR))
        .agg(sf.count("*").alias("flights"))
        .select(sf.col("window.start").alias("hour"), "flights")
        .writeStream.foreachBatch(answers.keep)
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def of_skypane(arriving: DataFrame, answers: Answers, checkpoint: Path) -> StreamingQuery:
    """Start skypane's count of the flights of each hour."""

    def keep(rows: DataFrame, batch_id: int) -> None:
        answers.keep(rows.select(sf.col("window_start").alias("hour"), "flights"), batch_id)

    count = sp.Aggregate(flights=sp.count())
    progress = sp.AqKSlack(max_drop=BUDGET)
    job = sp.stream(
        arriving, count, time="scheduled", window=HOUR, progress=progress, output=keep, checkpoint=str(checkpoint)
    )
    return job.start(trigger="0 seconds").query


def replay(spark: SparkSession, flights: pa.Table, folder: Path) -> dict[str, Answers]:
    """Let the flights arrive, file by file, and return what each way has answered."""
    clock, inbox = Clock(), folder / "arriving"
    inbox.mkdir()
    arriving = spark.readStream.schema("scheduled timestamp").parquet(str(inbox))
    ways = {f"withWatermark, {delay}": partial(of_spark, arriving, delay) for delay in DELAYS}
    starts = {**ways, SKYPANE: partial(of_skypane, arriving)}
    answers = {name: Answers(clock) for name in starts}
    queries = [start(answers[name], folder / f"state of {name}") for name, start in starts.items()]
    departed = flights["departed"]
    while (end := clock.now + FILE) <= pc.max(departed).as_py():
        arrived = flights.filter(pc.and_(pc.greater_equal(departed, clock.now), pc.less(departed, end)))
        clock.now = end
        pq.write_table(arrived.select(["scheduled"]), inbox / "_new")
        (inbox / "_new").rename(inbox / f"{end:%m-%d-%H}.parquet")
        for query in queries:
            query.processAllAvailable()
        if (end - BEGIN) % WEEK == timedelta(0):
            print(f"week {(end - BEGIN) // WEEK}", flush=True)
    for query in queries:
        query.stop()
    return answers


def true_flights(flights: pa.Table) -> dict[datetime, int]:
    """Return the flights of each hour."""
    hours = pc.floor_temporal(flights["scheduled"], unit="hour")
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(hours).to_pylist()}


def draw(path: Path, years: dict[str, Year]) -> None:
    """Draw the shares lost above, and the waits below."""
    with mpl.rc_context({**PLAIN, "legend.frameon": False}):
        figure = Figure(figsize=(7.2, 4.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        for number, (name, year) in enumerate(years.items()):
            _weeks(above, 100 * year.lost, name, number)
            _weeks(below, year.waits, name, number)
        above.axhline(100 * BUDGET, color="#888888", linewidth=0.8, linestyle="--")
        above.set_ylabel("flights lost, %")
        above.legend()
        below.set_ylabel("wait, hours")
        below.set_xlabel("week of 2013")
        figure.savefig(path, format="svg", metadata={"Date": None})


def _weeks(axes: Axes, values: FloatArray, name: str, number: int) -> None:
    of_skypane = name == SKYPANE
    axes.step(
        np.arange(1, 1 + len(values)),
        values,
        where="mid",
        label=name,
        color=f"C{number}",
        linewidth=2.0 if of_skypane else 1.2,
    )
    axes.set_ylim(bottom=0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Replay the year, print the table, and draw."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--docs", type=Path)
    options.add_argument("--weeks", type=int, default=52)
    given = options.parse_args(arguments)
    flights = departures().select(["scheduled", "departed"])
    end = BEGIN + given.weeks * WEEK
    flights = flights.filter(pc.less(flights["departed"], end))
    with tempfile.TemporaryDirectory() as folder:
        answers = replay(sp.session(), flights, Path(folder))
    true = true_flights(flights)
    years = {name: by_week(true, one) for name, one in answers.items()}
    lines = [
        [name, f"{year.share:.2%}", f"{year.lost.max():.2%}", f"{year.waits.mean():.1f} h", f"{year.waits.max():.1f} h"]
        for name, year in years.items()
    ]
    print(markdown_table(["", "lost", "in the worst week", "mean wait", "in the longest week"], lines))
    if given.docs is not None:
        draw(given.docs / "lost-by-week.svg", years)


if __name__ == "__main__":
    main()
