"""One start of a stream, as Structured Streaming runs it: batches and their commits in a log, what was begun comes again."""

from __future__ import annotations

import hashlib
import json
import os
import random
import uuid
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from tests.chaos.naive import CONTINUOUS, EVERY, LENGTH, SCHEMA, SHORT, SLIDE, WITHIN
from tests.chaos.seam import Frame, Spark

import skypane as sp
from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.parallelism import Workers
from skypane.control.splitting import splitting
from skypane.operators.amendments import AmendRule
from skypane.operators.fronts import ContinuousSkyline
from skypane.plan import ContinuousPlan, Plan
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.job import sent
from skypane.runtime.spark.sinks.batch_rows import BatchRows
from skypane.runtime.spark.sinks.current_front import Current
from skypane.runtime.spark.sinks.directory import Directory
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.shared_plan import SharedPlan
from skypane.windows import Windows

SCENARIOS: Final = ("skyline", "sums", "continuous", "shared", "amended", "early", "rolling")
SHARED: Final = {"skyline": Windows(LENGTH, SLIDE), "sums": Windows(SHORT, SHORT)}
"""The queries of the scenario "shared", by name, and their windows."""
PREFERENCE = "price MIN, rating MAX"
FILE: Final = 9_000
"""Bytes of a file in the scenario "rolling", in which answers and late rows wait for it: those of a few batches."""
_NEVER: Final = 1e9
"""Seconds that nothing is worth."""


@dataclass(frozen=True)
class Stream:
    """A stream over `rows` in `folder`; from batch `late_from` on it has a late sink, after `drained` it is drained."""

    scenario: str
    folder: Path
    rows: pa.Table
    late_from: int
    drained: int

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def place(self) -> str:
        """The folder of the checkpoint and the outputs."""
        return str(self.folder)

    def _out(self, name: str) -> Noted:
        out = Noted(f"{self.place}/{name}", notes=self.folder / name)
        return out if self.scenario != "rolling" else replace(out, roll="1 hour", roll_bytes=FILE)

    def setting(self, chance: random.Random, *, late: bool) -> JobSettings:
        out = self._out("out")
        other = self._out("late") if late else None
        # Half of the starts answer in tasks, whatever it would cost; none moves rows between tasks, which only Spark can.
        costs = Costs(job=0.0, window=1.0, shard_per_row=0.0) if chance.random() < 0.5 else DEFAULT_COSTS
        costs = replace(costs, exchange=_NEVER)
        plan: Plan | SharedPlan
        sums = sp.Aggregate("sensor", required="price", n=sp.count(), total=sp.sum("weight"), low=sp.min("price"))
        best = sp.Skyline(PREFERENCE, "sensor")
        sinks: Sinks | SharedSinks
        if self.scenario == "shared":
            asked = {"skyline": best, "sums": sums}
            plan = SharedPlan({name: Plan(query, SHARED[name], "ts", sp.KSlack()) for name, query in asked.items()})
            sinks = SharedSinks.of({name: self._out(f"out/{name}") for name in asked}, other, [*asked])
        elif self.scenario == "continuous":
            query = ContinuousSkyline(PREFERENCE, "ts", LENGTH, ("sensor",))
            plan = ContinuousPlan(query=query, windows=Windows(CONTINUOUS, CONTINUOUS), time="ts", progress=sp.KSlack())
            sinks = Sinks.of(out, other, Current(f"{self.place}/front"))
        else:
            chosen = sums if self.scenario == "sums" else best
            plan = Plan(query=chosen, windows=Windows(LENGTH, SLIDE), time="ts", progress=sp.KSlack())
            if self.scenario in {"amended", "early"}:
                plan = replace(plan, progress=sp.Watermark("1 second"), amend=AmendRule(WITHIN))
            if self.scenario == "early":
                plan = replace(plan, early=EVERY)
            sinks = Sinks.of(out, other)
        sinks.check(sent(plan, SCHEMA))
        return JobSettings(
            plan=plan, schema=SCHEMA, checkpoint=f"{self.place}/checkpoint", sinks=sinks,
            splitting=splitting("PB_RR"), costs=costs,
        )  # fmt: skip


@dataclass(frozen=True)
class Noted(Directory):
    """A folder of answers, and beside the local folder `notes` a digest of what it received, by batch."""

    _: KW_ONLY
    notes: Path

    def write(self, spark: SparkSession, answers: BatchRows, batch_id: int) -> None:
        rows = sorted(map(repr, answers.table().to_pylist()))
        digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
        notes = _notes(self.notes)
        notes.mkdir(parents=True, exist_ok=True)
        (notes / f"{batch_id}-{digest}").touch()
        super().write(spark, answers, batch_id)


def deliveries(folder: Path) -> list[Path]:
    """Return a file for each batch and what a folder received under its number, "number-digest"."""
    return sorted(_notes(folder).iterdir()) if _notes(folder).is_dir() else []


def _notes(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-deliveries")


def numbers(log: Path) -> list[int]:
    return sorted(int(path.name) for path in log.iterdir() if path.name.isdecimal())


def put(log: Path, number: int, value: Any) -> bool:
    """Note a value under a number, whole, unless there is one."""
    draft = log / f".{uuid.uuid4().hex}"
    draft.write_text(json.dumps(value), encoding="ascii")
    try:
        os.link(draft, log / str(number))
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def drive(stream: Stream, chance: random.Random) -> None:
    """Run the stream to its end, with as much as it likes in a batch."""
    begun, done = stream.log / "offsets", stream.log / "commits"
    for log in (begun, done):
        log.mkdir(parents=True, exist_ok=True)
    spark = Spark(SCHEMA, chance)
    session = cast("SparkSession", spark)
    late, engine = None, cast("Engine", None)
    while True:
        batch = _next(stream, begun, done, chance)
        number = len(numbers(done)) if batch is None else batch[0]
        if late is not (late := number >= stream.late_from):
            engine = Engine(stream.setting(chance, late=late), Workers(chance.randint(1, 3), chance.randint(1, 3)))
            engine.finish_drain(session)
            continue  # Spark looks into its log after that
        if batch is None:
            engine.drain(session)
            return
        _, start, end = batch
        engine(cast("DataFrame", Frame(spark, _parts(stream.rows.slice(start, end - start), chance))), number)
        put(done, number, {})
        if number == stream.drained:
            engine.drain(session)


def _next(stream: Stream, begun: Path, done: Path, chance: random.Random) -> tuple[int, int, int] | None:
    """Return the batch that was begun and not committed, or else a new one; None at the end."""
    offsets, commits = numbers(begun), numbers(done)
    if offsets and (not commits or commits[-1] < offsets[-1]):
        number = offsets[-1]
    else:
        number = len(offsets)
        start = json.loads((begun / str(number - 1)).read_text())[1] if number else 0
        end = min(start + chance.choice([20, 40, 60]), len(stream.rows))
        if start == end:
            return None
        put(begun, number, [start, end])  # of two drivers, one has noted it: both go by what stands there
    start, end = json.loads((begun / str(number)).read_text())
    return number, start, end


def _parts(rows: pa.Table, chance: random.Random) -> list[pa.Table]:
    cuts = sorted(chance.randint(0, len(rows)) for _ in range(chance.choice([0, 0, 1, 2])))
    return [rows.slice(low, high - low) for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
