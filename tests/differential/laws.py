"""Laws beside equality with the definition: a case and another one made of it, answered alike, must agree in a known way.

A law is a function of a case and of what answers one; it returns in words what does not hold; None: it holds, or is none of this case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from tests.differential.case import ID, TIME, Aggregate, Case, Continuous, KDominant, Skyline, TopDelta, TopK
from tests.differential.compare import same_answers, starts_of
from tests.differential.definition.continuous import replayed
from tests.differential.definition.values import dense, is_nan, plain
from tests.differential.definition.windows import times, usable
from tests.differential.ways.continuous import Emitted
from tests.differential.ways.streams import Run
from tests.differential.ways.windowed import by_worker

Answer: TypeAlias = Callable[[Case], Any]
Law: TypeAlias = Callable[[Case, Answer], str | None]
Pairs: TypeAlias = list[tuple[int, ...]]


def _rows(found: Any) -> Pairs:
    """Return the rows of an answer: start of the window and id, or time, action and id; sorted."""
    if isinstance(found, Emitted):
        return [tuple(one) for one in found.updates.tolist()]
    if not isinstance(found, pa.Table) or not found.num_rows:
        return []
    return sorted(zip(starts_of(found).tolist(), found.column(ID).to_pylist(), strict=True))


def _agree(case: Case, one: Any, other: Any) -> bool:
    if isinstance(one, Run) and isinstance(other, Run):
        reasons = [
            sorted(zip(run.rejected[ID].to_pylist(), run.rejected["reason"].to_pylist(), strict=True))
            for run in (one, other)
        ]
        return reasons[0] == reasons[1] and _agree(case, one.answers, other.answers)
    return same_answers(one, other) if isinstance(case.spec, Aggregate) else _rows(one) == _rows(other)


def order_in_a_batch(case: Case, answer: Answer) -> str | None:
    """In which order the rows of a batch lie makes no difference."""
    mixed = np.lexsort((case.rng(20).random(case.rows.num_rows), case.batch))
    other = replace(case, rows=case.rows.take(pa.array(mixed)))
    return None if _agree(case, answer(case), answer(other)) else "rows of a batch in another order give another answer"


def cut(case: Case, answer: Answer) -> str | None:
    """Where the stream is cut into batches makes no difference, as long as no row is late."""
    edges = np.sort(case.rng(21).integers(0, case.rows.num_rows + 1, 3))
    other = replace(case, batch=np.searchsorted(edges, np.arange(case.rows.num_rows), "right").astype(np.int64))
    return None if _agree(case, answer(case), answer(other)) else "another cut into batches gives another answer"


def monotone(case: Case, answer: Answer) -> str | None:
    """Only the order of a criterion's values counts."""
    preference = getattr(case.spec, "preference", None)
    if preference is None:
        return None
    other = case
    for level in preference.levels:
        for one in (criterion for component in level for criterion in component):
            if one.sense != "around":
                other = replace(other, rows=_ranked(other.rows, one.column, case.rng(22)))
    return (
        None if _agree(case, answer(case), answer(other)) else "ranks of a criterion, in its place, give another answer"
    )


def _ranked(rows: pa.Table, column: str, rng: np.random.Generator) -> pa.Table:
    values = plain(rows.column(column))
    known = [place for place, value in enumerate(values) if value is not None and not is_nan(value)]
    ranks = np.zeros(len(values), np.int64)
    ranks[known] = dense([values[place] for place in known]) if known else []
    unknown = np.ones(len(values), np.bool_)
    unknown[known] = False
    kind = [pa.int64(), pa.float64(), pa.int32()][rng.integers(3)]
    ranked = pa.array(ranks * 7 - 3, mask=unknown).cast(kind)
    return rows.set_column(rows.column_names.index(column), column, ranked)


def copies(case: Case, answer: Answer) -> str | None:
    """A row that comes twice is there twice, and changes nothing else."""
    if not isinstance(case.spec, Skyline | KDominant):
        return None
    twice = np.repeat(np.arange(case.rows.num_rows), 2)
    other = replace(case, rows=case.rows.take(pa.array(twice)), batch=case.batch[twice])
    wanted = sorted([*_rows(answer(case))] * 2)
    return None if wanted == _rows(answer(other)) else "rows that come twice give another answer than each once"


def later(case: Case, answer: Answer) -> str | None:
    """All times later, and windows with them, by anything: the same answers, as much later."""
    if isinstance(case.spec, Aggregate | TopK):
        return None  # times are values there
    by = int(case.rng(23).choice([1, -7, 10**9 + 1, 3 * 10**14]))
    moved = [None if time is None else time + by for time in plain(case.rows.column(TIME))]
    kind = case.rows.schema.field(TIME).type
    rows = case.rows.set_column(case.rows.column_names.index(TIME), TIME, pa.array(moved, pa.int64()).cast(kind))
    windows = replace(case.windows, offset=case.windows.offset + by)
    wanted = [(row[0] + by, *row[1:]) for row in _rows(answer(case))]
    return (
        None if wanted == _rows(answer(replace(case, rows=rows, windows=windows))) else "later rows give another answer"
    )


def groups_apart(case: Case, answer: Answer) -> str | None:
    """The answer of a group is that to its rows alone."""
    spec: Any = case.spec
    by = (*spec.by, *getattr(getattr(spec, "preference", None), "groups", ()))
    if isinstance(spec, Aggregate) or not by or not case.rows.num_rows:
        return None
    values = [repr(value + 0.0 if isinstance(value, float) else value) for value in plain(case.rows.column(by[0]))]
    mine = np.array(values) == values[int(case.rng(24).integers(len(values)))]
    ids = set(case.rows.column(ID).filter(pa.array(mine)).to_pylist())
    wanted = [row for row in _rows(answer(case)) if row[-1] in ids]
    if isinstance(case.spec, Continuous):  # less may have come of a part
        alone = answer(case.take(np.flatnonzero(mine)))
        return (
            None
            if [row for row in wanted if row[0] < alone.until] == _rows(alone)
            else "a group alone is answered differently"
        )
    return None if wanted == _rows(answer(case.take(np.flatnonzero(mine)))) else "a group alone has another answer"


def special_cases(case: Case, answer: Answer) -> str | None:
    """k-dominance in all criteria, and a delta that no k can reach, leave the skyline."""
    spec = case.spec
    if not isinstance(spec, KDominant | TopDelta):
        return None
    d = len(spec.preference.levels[0])
    whole = replace(spec, k=d) if isinstance(spec, KDominant) else replace(spec, delta=case.rows.num_rows)
    skyline = Skyline(spec.preference, spec.by)
    same = _rows(answer(replace(case, spec=whole))) == _rows(answer(replace(case, spec=skyline)))
    return None if same else "of all criteria it is not the skyline"


def fronts_at_window_ends(case: Case, answer: Answer) -> str | None:
    """Updates, applied one by one, give at the end of a window what a skyline of that window is."""
    spec = case.spec
    if not isinstance(spec, Continuous) or not case.rows.num_rows:
        return None
    span = np.ptp(times(case.rows.take(pa.array(usable(case.rows, spec))))) if len(usable(case.rows, spec)) else 0
    slide = max(1, spec.window // int(case.rng(25).choice([1, 2, 5])), int(span) // 20)
    windows = replace(case.windows, length=spec.window, slide=min(spec.window, slide))
    if int(span) // windows.slide > 100:
        return None
    found = by_worker(replace(case, spec=Skyline(spec.preference, spec.by), windows=windows))
    emitted = answer(case)
    fronts: dict[int, list[int]] = {}
    for start, row in _rows(found):
        fronts.setdefault(start + spec.window - 1, []).append(row)
    instants = [end for end in sorted(fronts) if end < emitted.until]
    for end, front in zip(instants, replayed(emitted.updates, instants), strict=True):
        if sorted(front) != fronts[end]:
            return f"at {end} the front is {sorted(front)[:9]}, and the skyline of the window {fronts[end][:9]}"
    return None


LAWS: Final[dict[str, Law]] = {
    "order in a batch": order_in_a_batch,
    "cut": cut,
    "monotone": monotone,
    "copies": copies,
    "later": later,
    "groups apart": groups_apart,
    "special cases": special_cases,
    "fronts at window ends": fronts_at_window_ends,
}
