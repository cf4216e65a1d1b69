"""One start of a stream, as Structured Streaming runs it: batches and their commits in a log, what was begun comes again."""

from __future__ import annotations

import json
import os
import random
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from tests.chaos import checking
from tests.chaos.naive import CHANGED, REPAIRED, SCHEMA
from tests.chaos.noted import Noted
from tests.chaos.scenarios import FILE, SCENARIOS, Scenario

from skypane.control.costs import DEFAULT_COSTS, Costs
from skypane.control.parallelism import Workers
from skypane.control.splitting import splitting
from skypane.plan import ContinuousPlan
from skypane.runtime.spark.engine.job_settings import JobSettings
from skypane.runtime.spark.engine.sent_rows import sent
from skypane.runtime.spark.engine.shell import Engine
from skypane.runtime.spark.sinks.current_front import Current
from skypane.runtime.spark.sinks.shared_sinks import SharedSinks
from skypane.runtime.spark.sinks.sink_arguments import Sinks
from skypane.shared_plan import SharedPlan
from skypane.testing import Session
from skypane.testing.frames import Frame
from skypane.types import ConfigError

METADATA: Final = '{"id": "chaos"}\n'
BEGUN: Final = 'v1\n{"batchTimestampMs": 0}\n'
"""Spark's files of a query and of a batch."""
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
    def row(self) -> Scenario:
        return SCENARIOS[self.scenario]

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def place(self) -> str:
        """The folder of the checkpoint and the outputs."""
        return str(self.folder)

    def check(self) -> bool:
        """Raise AssertionError, saying what, if anything is wrong; return whether what the scenario is about has happened."""
        return checking.check(self)

    def record(self, number: int) -> None:
        """Write what Spark records of a batch that it begins, and nothing of its sources, for a policy that needs it."""
        if not self.row.plan.progress.needs_backlog:
            return
        checkpoint = self.folder / "checkpoint"
        (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        for name, content in (("metadata", METADATA), (f"offsets/{number}", BEGUN)):
            draft = checkpoint / f".{uuid.uuid4().hex}"
            draft.write_text(content, encoding="ascii")
            draft.replace(checkpoint / name)

    def drains_after(self, number: int) -> bool:
        return number == self.drained or (self.row.drains and number % 2 == 1)

    def settings_at(self, number: int) -> tuple[bool, bool]:
        """Return whether there is a late sink, and whether the query is the later one, in the batch of this number."""
        return number >= self.late_from, self.row.later is not None and number >= CHANGED

    def _out(self, name: str) -> Noted:
        out = Noted(f"{self.place}/{name}", notes=self.folder / name)
        return replace(out, roll="1 hour", roll_bytes=FILE) if self.row.rolls else out

    def setting(self, chance: random.Random, *, late: bool, later: bool = False) -> JobSettings:
        other = self._out("late") if late else None
        # Half of the starts answer in tasks, whatever it would cost; none moves rows between tasks, which only Spark can.
        costs = Costs(job=0.0, window=1.0, shard_per_row=0.0) if chance.random() < 0.5 else DEFAULT_COSTS
        plan = self.row.later if later and self.row.later is not None else self.row.plan
        sinks: Sinks | SharedSinks
        if isinstance(plan, SharedPlan):
            sinks = SharedSinks.of({name: self._out(f"out/{name}") for name in plan.plans}, other, [*plan.plans])
        else:
            front = Current(f"{self.place}/front") if isinstance(plan, ContinuousPlan) else None
            sinks = Sinks.of(self._out("out"), other, front)
        sinks.check(sent(plan, SCHEMA))
        return JobSettings(
            plan=plan, schema=SCHEMA, checkpoint=f"{self.place}/checkpoint", sinks=sinks,
            splitting=splitting("PB_RR"), costs=replace(costs, exchange=_NEVER),
        )  # fmt: skip


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
    without_java = Session(chance.randrange(1 << 30), repeated=0.05)
    session = cast("SparkSession", without_java)
    known, engine = None, cast("Engine", None)
    while True:
        batch = _next(stream, begun, done, chance)
        number = len(numbers(done)) if batch is None else batch[0]
        if known != (known := stream.settings_at(number)):
            setting = stream.setting(chance, late=known[0], later=known[1])
            engine = Engine(setting, Workers(chance.randint(1, 3), chance.randint(1, 3)))
            engine.finish_drain(session)
            continue  # Spark looks into its log after that
        if batch is None:
            engine.drain(session)
            return
        stream.record(number)
        _, start, end = batch
        engine(Frame(without_java, without_java.cut(stream.rows.slice(start, end - start))), number)
        put(done, number, {})
        if stream.drains_after(number):
            engine.drain(session)
        if number in stream.row.readmits:
            with suppress(ConfigError):  # there is no such row
                engine.readmit(session, "null price", _repaired)


def _repaired(frame: DataFrame) -> DataFrame:
    """Return rows with a price where they had none."""
    rows = frame.toArrow()
    at = rows.column_names.index("price")
    return frame.sparkSession.createDataFrame(rows.set_column(at, "price", pc.fill_null(rows["price"], REPAIRED)))


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
