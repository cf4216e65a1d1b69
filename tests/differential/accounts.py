"""Streams whose policy drops rows: those that are gone are those that had to go, and the answers are those to the others."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from tests.differential.case import ID, Case
from tests.differential.compare import difference
from tests.differential.definition.late import gone, has_words
from tests.differential.definition.windows import usable
from tests.differential.expected import Refused, expected


def stream_differs(case: Case, answers: pa.Table, rejected: pa.Table) -> str | None:
    """Return how the answers of a stream differ from those to the rows that were not rejected.

    Rows that cannot be ranked are all rejected as such, and no others. At the end there is a drain: every row that has entered
    is in all of its windows' answers.
    """
    entered, put_aside = parted(case.rows, rejected)
    ids = case.rows.column(ID)
    ranked = ids.take(pa.array(usable(case.rows, case.spec)))
    unusable = sorted((Counter(ids.to_pylist()) - Counter(ranked.to_pylist())).elements())
    if put_aside != unusable:
        return f"put aside as unusable: ids {put_aside[:9]}, wanted {unusable[:9]}"
    if (strays := gone_differ(case, rejected)) is not None:
        return strays
    wanted = expected(case, entered)
    if isinstance(wanted, Refused):
        return f"{wanted.why}, and it was answered"
    return difference(case, wanted, answers)


def gone_differ(case: Case, rejected: pa.Table) -> str | None:
    """Return how the rows that were late, or abandoned, differ from those that are by the policy's own words, if these define it."""
    if not has_words(case.policy):
        return None
    for reason, rows in gone(case)._asdict().items():
        wanted = Counter(case.rows.column(ID).take(pa.array(rows)).to_pylist())
        found = Counter(one for one, why in _reasons(rejected) if why == reason)
        missing, more = (sorted((one - other).elements()) for one, other in ((wanted, found), (found, wanted)))
        if missing or more:
            return f"{reason} are {missing[:9]}, and were not reported as such; reported: {more[:9]} (ids)"
    return None


def _reasons(rejected: pa.Table) -> list[tuple[int, str]]:
    """Return the id of each row that was rejected, and why."""
    return list(zip(rejected.column(ID).to_pylist(), rejected.column("reason").to_pylist(), strict=True))


def parted(rows: pa.Table, rejected: pa.Table) -> tuple[pa.Table, list[int]]:
    """Return the rows that entered, and the ids of those that were quarantined for what they are, ascending."""
    gone = Counter(rejected.column(ID).to_pylist())
    left = []
    for place, one in enumerate(rows.column(ID).to_pylist()):
        if gone[one]:
            gone[one] -= 1
        else:
            left.append(place)
    aside = sorted(one for one, reason in _reasons(rejected) if reason not in ("late", "future"))
    return rows.take(pa.array(left, pa.int64())), aside
