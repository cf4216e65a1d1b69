"""Flights that watermark delays and a drop budget lose in each week of a year, and how long their answers take.

    python -m measure.lost_by_week [--docs docs] [--weeks 52] [--spark WEEKS]

The departures of a year arrive as files of 15 minutes, in the order in which the planes left; the event time is the
scheduled departure. The flights of each hour are counted, with two delays of withWatermark and with skypane's default budget. A
flight is lost if the answer for its hour came without it. Time is that of the replayed year: an answer comes when the file
has been read that completes it.

The progress policies replay the year in some minutes, without Spark; Watermark is withWatermark, row for row. With --spark, Spark
itself and a job of skypane read the files of the first weeks as well, and a difference in any answer is an error. Draws the
picture into the folder of --docs, and writes the table into its progress.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
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
from measure.tables import markdown_table, replace_between
from skypane.datasets.flights import departures
from skypane.progress import PaneArrivals, ProgressPolicy
from skypane.reporting.plot_style import PLAIN
from skypane.types import FloatArray, IntArray, micros
from skypane.windows import Windows
from skypane.wording import span

BEGIN: Final = datetime(2013, 1, 1, tzinfo=UTC)
FILE: Final = timedelta(minutes=15)
WEEK: Final = timedelta(weeks=1)
BUDGET: Final = 0.01
DELAYS: Final = ("30 minutes", "3 hours")
SKYPANE: Final = f"skypane, at most {BUDGET:.0%}"
HOUR: Final = timedelta(hours=1)
WINDOWS: Final = Windows.of("1 hour")
#: The delay that is best in hindsight is found in steps of this.
STEP: Final = timedelta(minutes=5)


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

    def keep(self, hour: datetime, flights: int) -> None:
        """Keep the answer that has just come for an hour."""
        self.flights[hour] = flights
        self.waits[hour] = (self.clock.now - hour) / HOUR - 1

    def keep_rows(self, rows: DataFrame, _batch_id: int) -> None:
        """Keep the rows of a batch, with the columns `hour` and `flights`."""
        for row in rows.toArrow().to_pylist():
            self.keep(row["hour"], row["flights"])


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


def files(flights: pa.Table, clock: Clock) -> Iterator[pa.Table]:
    """Yield the flights file by file, up to the last whole file, and move the clock to the end of each."""
    departed = flights["departed"]
    number = (pc.max(departed).as_py() - BEGIN) // FILE
    ends = [BEGIN + FILE * (at + 1) for at in range(number)]
    cuts = np.searchsorted(departed.to_numpy(), [np.datetime64(end.replace(tzinfo=None), "us") for end in ends])
    for end, (first, last) in zip(ends, pairwise([0, *cuts.tolist()]), strict=True):
        clock.now = end
        yield flights.slice(first, last - first).select(["scheduled"])


def policies() -> dict[str, ProgressPolicy]:
    """Return the ways as progress policies. Spark has no bound for times in the future."""
    delays = {f"withWatermark, {delay}": sp.Watermark(delay, max_ahead=None) for delay in DELAYS}
    return {**delays, SKYPANE: sp.AqKSlack(max_drop=BUDGET)}


def by_policy(flights: pa.Table, policy: ProgressPolicy) -> Answers:
    """Return what a query with this policy answers: it loses the flights of hours that it has answered."""
    answers, state, counts = Answers(Clock()), policy.init(), Counter[int]()
    for arrived in files(flights, answers.clock):
        if not arrived.num_rows:
            continue
        arrivals = PaneArrivals.of_times(times_of(arrived), WINDOWS)
        in_time = arrivals if state.punctuation is None else arrivals.only(arrivals.pane_end > state.punctuation)
        counts.update(dict(zip(in_time.pane_end.tolist(), in_time.rows.tolist(), strict=True)))
        state, _ = policy.decide(state, arrivals)
        closed = () if state.punctuation is None else (end for end in counts if end <= state.punctuation)
        for end in sorted(closed):
            answers.keep(datetime.fromtimestamp(end / 1e6, UTC) - HOUR, counts.pop(end))
    return answers


def best_delay(flights: pa.Table, lost: float) -> timedelta:
    """Return the smallest delay that loses at most this share of the flights, known only when the year is over.

    A delay loses a flight if the end of its hour lies that far behind the newest time of the files before its own.
    """
    newest, distances = None, [np.empty(0, np.int64)]
    for arrived in files(flights, Clock()):
        times = times_of(arrived)
        if newest is not None:
            distances.append(newest - WINDOWS.pane_end(WINDOWS.panes_at(times)))
        newest = max([*times.tolist(), *([] if newest is None else [newest])], default=None)
    behind = np.sort(np.concatenate(distances))[::-1]
    kept = behind[int(lost * flights.num_rows) :]
    return STEP * max(0, int(kept.max(initial=-1)) // micros(STEP) + 1)


def times_of(arrived: pa.Table) -> IntArray:
    """Return the event times of a file in microseconds."""
    times: IntArray = arrived["scheduled"].cast(pa.int64()).to_numpy()
    return times


def of_spark(arriving: DataFrame, delay: str, answers: Answers, checkpoint: Path) -> StreamingQuery:
    """Start Spark's own count of the flights of each hour."""
    return (
        arriving.withWatermark("scheduled", delay)
        .groupBy(sf.window("scheduled", "1 hour"))
        .agg(sf.count("*").alias("flights"))
        .select(sf.col("window.start").alias("hour"), "flights")
        .writeStream.foreachBatch(answers.keep_rows)
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def of_skypane(arriving: DataFrame, answers: Answers, checkpoint: Path) -> StreamingQuery:
    """Start skypane's count of the flights of each hour."""

    def keep(rows: DataFrame, batch_id: int) -> None:
        answers.keep_rows(rows.select(sf.col("window_start").alias("hour"), "flights"), batch_id)

    count = sp.Aggregate(flights=sp.count())
    progress = sp.AqKSlack(max_drop=BUDGET)
    job = sp.stream(
        arriving, count, time="scheduled", window="1 hour", progress=progress, output=keep, checkpoint=str(checkpoint)
    )
    return job.start(trigger="0 seconds").query


def by_queries(spark: SparkSession, flights: pa.Table, folder: Path) -> dict[str, Answers]:
    """Let the flights arrive in Spark, file by file, and return what each way has answered."""
    clock, inbox = Clock(), folder / "arriving"
    inbox.mkdir()
    arriving = spark.readStream.schema("scheduled timestamp").parquet(str(inbox))
    ways = {f"withWatermark, {delay}": partial(of_spark, arriving, delay) for delay in DELAYS}
    starts = {**ways, SKYPANE: partial(of_skypane, arriving)}
    answers = {name: Answers(clock) for name in starts}
    queries = [start(answers[name], folder / f"state of {name}") for name, start in starts.items()]
    try:
        for arrived in files(flights, clock):
            pq.write_table(arrived, inbox / "_new")
            (inbox / "_new").rename(inbox / f"{clock.now:%m-%d-%H-%M}.parquet")
            for query in queries:
                query.processAllAvailable()
            if (clock.now - BEGIN) % timedelta(days=1) == timedelta(0):
                print(f"Spark: day {(clock.now - BEGIN) // timedelta(days=1)}", flush=True)
    finally:
        for query in queries:
            query.stop()
    return answers


def check(expected: dict[str, Answers], found: dict[str, Answers]) -> None:
    """Raise ValueError if a query has not answered what its policy has, or not after the same file."""
    for name, answers in expected.items():
        for hour in sorted({*answers.flights, *found[name].flights}):
            told, came = (
                f"{one.flights[hour]} flights after {one.waits[hour]:g} h" if hour in one.flights else "no answer"
                for one in (answers, found[name])
            )
            if told != came:
                raise ValueError(f"{name}, {hour}: the policy has {told}, the query {came}")


def true_flights(flights: pa.Table) -> dict[datetime, int]:
    """Return the flights of each hour."""
    hours = pc.floor_temporal(flights["scheduled"], unit="hour")
    return {pair["values"]: pair["counts"] for pair in pc.value_counts(hours).to_pylist()}


def until(flights: pa.Table, weeks: int) -> pa.Table:
    """Return the flights that left in the first weeks."""
    return flights.filter(pc.less(flights["departed"], BEGIN + weeks * WEEK))


def row(name: str, year: Year) -> list[str]:
    """Return the figures of one way."""
    return [
        name,
        f"{year.share:.2%}",
        f"{year.lost.max():.2%}",
        f"{year.waits.mean():.1f} h",
        f"{year.waits.min():.1f} to {year.waits.max():.1f} h",
    ]


def pictured(years: dict[str, Year]) -> Figure:
    """Return the shares lost above, and the waits below."""
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    for number, (name, year) in enumerate(years.items()):
        told = f"{name}: {year.share:.1%} lost, {year.waits.mean():.1f} hours"
        _weeks(above, 100 * year.lost, told, number, bold=name == SKYPANE)
        _weeks(below, year.waits, told, number, bold=name == SKYPANE)
    above.axhline(100 * BUDGET, color="#888888", linewidth=0.8, linestyle="--")
    above.set_ylabel("flights lost, %")
    for axes in (above, below):
        axes.set_ylim(bottom=0)  # after all lines: it fixes the top
    figure.legend(*above.get_legend_handles_labels(), loc="outside upper left")
    below.set_ylabel("wait, hours")
    below.set_xlabel("week of 2013")
    return figure


def draw(path: Path, years: dict[str, Year]) -> None:
    """Write the picture."""
    with mpl.rc_context({**PLAIN, "legend.frameon": False}):
        pictured(years).savefig(path, format="svg", metadata={"Date": None})


def _weeks(axes: Axes, values: FloatArray, name: str, number: int, *, bold: bool) -> None:
    axes.step(
        np.arange(1, 1 + len(values)),
        values,
        where="mid",
        label=name,
        color=f"C{number}",
        linewidth=2.0 if bold else 1.2,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Replay the year, print the table, and draw."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--docs", type=Path, help="folder for the table and the picture")
    options.add_argument("--weeks", type=int, default=52)
    options.add_argument("--spark", type=int, default=0, help="weeks that Spark reads, too")
    given = options.parse_args(arguments)
    recorded = departures().select(["scheduled", "departed"])
    if given.spark:
        first = until(recorded, given.spark)
        with tempfile.TemporaryDirectory() as folder:
            found = by_queries(sp.session(), first, Path(folder))
        check({name: by_policy(first, policy) for name, policy in policies().items()}, found)
        print(f"Spark: the same answers, after the same files, in {given.spark} weeks")
    flights = until(recorded, given.weeks)
    true = true_flights(flights)
    years = {name: by_week(true, by_policy(flights, policy)) for name, policy in policies().items()}
    delay = best_delay(flights, years[SKYPANE].share)
    best = by_week(true, by_policy(flights, sp.Watermark(delay, max_ahead=None)))
    lines = [row(name, year) for name, year in years.items()]
    lines.append(row(f"the best delay of withWatermark in hindsight, {span(micros(delay))}", best))
    table = markdown_table(["", "lost", "in the worst week", "mean wait", "by week"], lines)
    print(table)
    if given.docs is not None:
        replace_between(given.docs / "progress.md", "lost by week", table)
        draw(given.docs / "lost-by-week.svg", years)


if __name__ == "__main__":
    main()
