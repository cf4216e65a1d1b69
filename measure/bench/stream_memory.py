"""The memory of a stream: how much driver, Java and Python workers hold, and what Java holds it for.

    python -m measure.bench.stream_memory [CASE ...] [--java OPTION ...] [--quick]

readme    README's program, with its four rows
skyline   30 micro-batches of 100,000 rows, a second of event time each: skyline of four criteria, windows of 1 s every 200 ms
keys      the same rows: count and average of 16,384 keys, windows of 6 s every 100 ms

Each case runs on local[2] in a process of its own, as sp.session() starts Java, and with each option of `--java` added.
Memory is what processes have without pages of files, looked at twenty times a second: the table has what each had when
all together had most. What Java holds it for is asked when the stream has ended.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import skypane as sp
from measure.first_minute.environment import ROOT
from measure.first_minute.parts import program_of
from measure.java_heap import parts
from measure.processes import Watch, cpu_seconds
from measure.results.record import Found, Table

MIB: Final = 1 << 20
PAGE: Final = "limits.md"
ROWS: Final = 100_000
"""Of a micro-batch; their event times span a second."""
BATCHES: Final = 30
UNCOUNTED: Final = 5
"""Batches at the beginning whose CPU time is not counted."""
KEYS: Final = 16_384
DEFAULT: Final = "by default"
G1: Final = "-XX:+UseG1GC"
"""The collector that Java takes where nobody chooses one, as for sessions of more threads."""
HEAD: Final = (
    "stream",
    "Java",
    "driver, MiB",
    "Java, MiB",
    "Python workers",
    "all at once",
    "Java's heap",
    "its classes and code",
    "CPU ms a batch",
)
Told = dict[str, Any]
"""What is known of a case that has run, as JSON."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A query and its windows."""

    query: sp.Skyline | sp.Aggregate
    window: str
    slide: str

    def run(self, spark: SparkSession, batches: int) -> float:
        """Answer the windows of so many micro-batches; return the CPU milliseconds of one, a median."""
        _write(Path("in"), batches)
        schema = spark.read.parquet("in").schema
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet("in")
        job = sp.stream(
            rows, self.query, time="ts", window=self.window, slide=self.slide, output="out", checkpoint="state"
        )
        used: list[float] = []
        handle = job.start(trigger="available now", on_batch=lambda _: used.append(cpu_seconds()))
        handle.await_termination()
        return statistics.median(after - before for before, after in pairwise(used[UNCOUNTED:])) * 1e3


STREAMS: Final[Mapping[str, Stream]] = {
    "skyline": Stream(sp.Skyline("c0 MIN, c1 MIN, c2 MIN, c3 MIN"), "1 second", "200 milliseconds"),
    "keys": Stream(sp.Aggregate("key", n=sp.count(), mean=sp.avg("c0")), "6 seconds", "100 milliseconds"),
}
README: Final = "readme"
CASES: Final = (README, *STREAMS)


def _write(folder: Path, batches: int) -> None:
    folder.mkdir()
    rng = np.random.default_rng(1)
    for batch in range(batches):
        times = 1_767_225_600_000_000 + (batch * ROWS + np.arange(ROWS)) * (1_000_000 // ROWS)
        columns = {"ts": pa.array(times, pa.timestamp("us", "UTC")), "key": rng.integers(0, KEYS, ROWS)}
        table = pa.table(columns | {f"c{at}": rng.random(ROWS) for at in range(4)})
        pq.write_table(table, folder / f"{batch:03d}.parquet", row_group_size=ROWS // 8)


def _here(case: str, batches: int) -> Told:
    """Run one case in this process and in the working directory."""
    told: Told = {"case": case}
    with Watch() as watch:
        spark = sp.session("local[2]", "skypane-memory")
        if case == README:
            program = program_of((ROOT / "README.md").read_text(encoding="utf-8"))
            exec(compile(program, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102 - our own page
        else:
            told["batch"] = STREAMS[case].run(spark, batches)
        told["parts"] = parts(spark)
    return told | {"most": watch.together}


def _apart(case: str, java: str, batches: int) -> Told:
    """Run one case with an option of Java in a process of its own, in a folder of its own."""
    command = [sys.executable, "-m", "measure.bench.stream_memory", case, "--here", str(batches)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))}
    if java != DEFAULT:
        environment["JDK_JAVA_OPTIONS"] = java
    with tempfile.TemporaryDirectory(prefix="skypane-memory-") as folder:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    told: Told = json.loads(done.stdout.splitlines()[-1])
    return told | {"java": java}


def line(told: Told) -> list[str]:
    """Return the line of the table for a case that has run."""
    kinds = ("driver", "java", "workers", "all")
    held = [told["most"][kind] for kind in kinds] + [told["parts"]["heap"], told["parts"]["code"]]
    batch = f"{told['batch']:.0f}" if "batch" in told else ""
    return [str(told["case"]), str(told["java"]), *(f"{size / MIB:,.0f}" for size in held), batch]


def main(argv: Sequence[str] | None = None) -> Found:
    """Run cases, print a table of them, return it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=[], help=", ".join(CASES))
    parser.add_argument("--java", action="append", metavar="OPTION", help=f"of Java, such as --java={G1}, the default")
    parser.add_argument("--quick", action="store_true", help="few micro-batches")
    parser.add_argument("--here", type=int, help="run one case here, with so many micro-batches")
    given = parser.parse_args(argv)
    if unknown := set(given.cases) - set(CASES):
        parser.error(f"there is no case {', '.join(sorted(unknown))}: {', '.join(CASES)}")
    if given.here:
        print(json.dumps(_here(given.cases[0], given.here)), flush=True)
        return []
    batches = UNCOUNTED + 3 if given.quick else BATCHES
    lines = []
    for case, java in product(given.cases or CASES, (DEFAULT, *(given.java or [G1]))):
        lines.append(line(_apart(case, java, batches)))
        print(*lines[-1], sep="  ", flush=True)
    table = Table(PAGE, "stream memory", HEAD, lines)
    print(table.text)
    return [table]


if __name__ == "__main__":
    main()
