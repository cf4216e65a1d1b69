"""What it costs that rows have texts, whose bytes Spark may add up after every row: one query, three ways to send its rows.

    python -m bench.texts [--quick]

The skyline of bench/streaming.py over rows with a few texts of some fifteen letters beside the criteria, sent in turn in each of the ways of
`skypane.runtime.spark.arrow_batches`: as short texts, which is what the engine does as long as they are, in the smaller
batches that leave more room to a row, and with their bytes added up. Figures as in bench/streaming.py.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import skypane as sp
from bench.record import markdown_table, replace_between
from bench.streaming import WARM_UP, Case, Progress, listened, stream
from skypane.runtime.spark.arrow_batches import ways
from skypane.runtime.spark.engine import crossing

WAYS = ("short, 4 KB", "short, 64 KB", "added up")


def with_texts(rows: DataFrame, texts: int) -> DataFrame:
    """Return rows with so many columns of texts in place of the numbers of their groups."""
    made = {f"t{index}": sf.concat(sf.lit("device no. "), sf.col("g1000").cast("string")) for index in range(texts)}
    return rows.withColumns(made).drop("g1000")


def run(spark: SparkSession, case: Case, texts: int, folder: Path, scratch: Path) -> str:
    """Run the query over the files in `folder`; return its id."""
    job = sp.stream(
        with_texts(stream(spark, folder), texts),
        sp.Skyline(case.preference()),
        time="time",
        window="1 second",
        slide="200 milliseconds",
        progress=sp.KSlack(),
        checkpoint=str(scratch / "checkpoint"),
        output=str(scratch / "out"),
    )
    handle = job.start(trigger="available now")
    handle.await_termination()
    return str(handle.query.id)


def measure(spark: SparkSession, listener: Progress, case: Case, texts: int, rounds: int) -> dict[str, float]:
    """Return the median rows per second of each way, run in turn `rounds` times after one that warms up."""
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory(prefix="skypane-bench-") as temporary:
        folder, scratch = Path(temporary) / "stream", Path(temporary) / "scratch"
        case.write(folder)
        for _ in range(rounds + 1):
            for index, name in enumerate(WAYS):
                with patch.object(crossing, "ways", lambda schema, one=index: ways(schema)[one:]):
                    rates[name].append(listener.rate(run(spark, case, texts, folder, scratch), case.batches))
                shutil.rmtree(scratch)
    return {name: statistics.median(values[1:]) for name, values in rates.items()}


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one case, one round, nothing recorded")
    parser.add_argument("--texts", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--criteria", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spark, listener = listened()
    cases = [(criteria, texts) for criteria in arguments.criteria for texts in arguments.texts]
    lines = []
    for criteria, texts in cases[:1] if arguments.quick else cases:
        case = Case(1_000_000, criteria, WARM_UP + 4, groups=(1_000,))
        rates = measure(spark, listener, case, texts, 1 if arguments.quick else arguments.rounds)
        ratio = rates[WAYS[0]] / rates[WAYS[-1]]
        lines.append([str(criteria), str(texts), *(f"{rate:,.0f}" for rate in rates.values()), f"{ratio:.2f}"])
        print(lines[-1], flush=True)
    heads = (f"{name}, rows/s" for name in WAYS)
    table = markdown_table(["criteria", "texts", *heads, "short : added up"], lines)
    print(table)
    if not arguments.quick:
        replace_between(Path("docs/bench-streaming.md"), "texts", table)


if __name__ == "__main__":
    main()
