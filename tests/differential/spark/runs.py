"""What happens to a stream on Spark beside its rows: files, tasks, starts, a sink that fails, a commit that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
import pyarrow as pa
from tests.differential.case import ID, TIME, Case, Continuous, Policy, Skyline, Windows
from tests.differential.definition.windows import times, usable
from tests.differential.draw.cases import drawn, kind_of

from skypane.control.measurements import LiftPlace

MOST_ROWS: Final = 1_500
MOST_BATCHES: Final = 4
WHERE: Final = ("driver", "spark", "threads")
"""Where windows are answered, if there are enough of them."""
_MANY_PANES: Final = 8
"""Windows of more panes are answered by comparing each row once, those of a skyline in groups always."""


@dataclass(frozen=True, slots=True)
class Run:
    """A case on Spark.

    files     of each batch
    stops     batches after which the stream is started again
    lost      whether Spark's last commit is lost at each stop
    fails     the batch whose answers the sink takes, and then fails; None: none
    lift      where rows are lifted
    where     of WHERE; what is not compared once, and has no keys, goes to the driver or to workers, if a batch has windows for
              several of these
    """

    case: Case
    files: int
    stops: tuple[int, ...]
    lost: bool
    fails: int | None
    where: str
    splitting: str
    lift: LiftPlace
    workers: tuple[int | None, int | None]

    def __str__(self) -> str:
        """The run in one paragraph."""
        settings = ", ".join(
            f"{item.name} {getattr(self, item.name)!r}" for item in fields(self) if item.name != "case"
        )
        return f"{settings}; {self.case}"


def runs(seed: int, kind: str | None = None) -> Iterator[Run]:
    """Yield runs of a kind from a seed on."""
    while True:
        if kind is None or kind_of(seed) == kind:
            case = drawn(seed)
            unknown = any(map(pa.types.is_unsigned_integer, case.rows.schema.types))
            if case.rows.num_rows <= MOST_ROWS and not unknown:
                yield run(case)
        seed += 1


def run(case: Case) -> Run:
    """Return what happens to a case on Spark; its policy is another one half of the time."""
    rng = case.rng(50)
    case = _in_few_batches(case)
    if isinstance(case.spec, Continuous):
        every = min(case.windows.length, case.spec.window)
        case = replace(case, windows=Windows(every, every))
    case = replace(case, policy=_policy(rng, case))
    case, where = _planted(rng, case), _where(rng, case)
    last = len(case.batches) - 1
    stops = tuple(sorted({int(rng.integers(0, last + 1)) for _ in range(int(rng.choice([0, 1, 1, 2])))} - {last}))
    drains = tuple(stop for stop in stops if rng.random() < 0.4)
    return Run(
        replace(case, drains=drains),
        files=int(rng.integers(1, 4)),
        stops=stops,
        lost=bool(rng.random() < 0.4),
        fails=int(rng.integers(0, last + 1)) if rng.random() < 0.25 else None,
        where=where,
        splitting=str(rng.choice(["PB_RR", "TB_RR", "AS", "AS_PID"])),
        workers=(_workers(rng, 3), _workers(rng, 7)),
        lift="driver" if rng.random() < 0.5 else "spark",
    )


def _where(rng: np.random.Generator, case: Case) -> str:
    """Return where windows shall be answered: in threads those whose rows are compared once, or that have keys, can be."""
    keys = getattr(case.spec, "by", ()) and getattr(case.spec, "top", None) is None
    return str(rng.choice(WHERE, p=(0.25, 0.25, 0.5) if _compared_once(case) or keys else (0.5, 0.5, 0.0)))


def _compared_once(case: Case) -> bool:
    if not isinstance(case.spec, Skyline) or len(case.spec.preference.levels) > 1:
        return False
    grouped = case.spec.by or case.spec.preference.groups
    return bool(grouped) or case.windows.length // case.windows.slide > _MANY_PANES


def _workers(rng: np.random.Generator, most: int) -> int | None:
    return None if rng.random() < 0.4 else int(rng.integers(1, most + 1))


def _in_few_batches(case: Case) -> Case:
    most = int(case.batch.max(initial=0))
    return case if most < MOST_BATCHES else replace(case, batch=case.batch * MOST_BATCHES // (most + 1))


def _policy(rng: np.random.Generator, case: Case) -> Policy:
    if not case.policy.total or case.policy.word != "Watermark" or rng.random() < 0.35:
        return case.policy
    if rng.random() < 0.5:
        return Policy("KSlack", (("max_slack", None), ("max_ahead", None)), total=False)
    delay = int(dict(case.policy.numbers).get("delay", case.windows.slide) * rng.choice([0.0, 0.1, 0.5]))
    return Policy("Watermark", (("delay", delay), ("max_ahead", None)), total=False)


def _planted(rng: np.random.Generator, case: Case) -> Case:
    """Put a row or two into the far future, in the first batch, that the stream abandons when it has moved on."""
    first, rows = int((case.batch == 0).sum()), case.rows
    good = usable(rows.slice(0, first), case.spec)
    ids = rows.column(ID).to_numpy()
    if len(good) < 8 or case.kind == "progress" or rng.random() < 0.7:
        return case
    chosen = [int(row) for row in good[: int(rng.integers(1, 3))] if np.count_nonzero(ids == ids[row]) == 1]
    when = times(rows.take(pa.array(usable(rows, case.spec))))
    reach = int(np.ptp(when)) + case.windows.length + 1
    column = rows.column(TIME).cast(pa.int64()).to_numpy(zero_copy_only=False).copy()
    moved = column.astype(object)
    moved[np.array(rows.column(TIME).is_null().to_pylist(), np.bool_)] = None
    for row in chosen:
        moved[row] = int(when.max()) + 3 * reach
    index = rows.column_names.index(TIME)
    far = pa.array(moved.tolist(), pa.int64()).cast(rows.schema.field(TIME).type)
    numbers = {**dict(case.policy.numbers), "max_ahead": reach, "patience": 1, "support": 1_000_000}
    policy = replace(case.policy, numbers=tuple(numbers.items()))
    rows = rows.set_column(index, rows.schema.field(TIME), far)
    return replace(case, rows=rows, policy=policy)
