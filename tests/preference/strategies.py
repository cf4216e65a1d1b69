"""Random preferences, and small tables of many column types, full of ties, for queries about them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.preference.oracle import Leaf, Pareto, Prior, Tree

BIG = 2**60
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
ZONED = pa.timestamp("us", tz="UTC")

# Few values per column, so that ties and duplicates are the rule.
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "f": (pa.float64(), [-float("inf"), -1.5, -0.0, 0.0, 2.5, float("inf")]),
    "g": (pa.float32(), [0.5, 1.0, 2.0]),
    "i": (pa.int32(), [-2, 0, 3]),
    "huge": (pa.int64(), [-BIG, BIG, BIG + 1, BIG + 2]),  # neighbours that float64 cannot distinguish
    "u": (pa.uint64(), [0, 2**64 - 2, 2**64 - 1]),
    "d": (pa.decimal128(30, 10), [Decimal(-1), Decimal("1.0000000001"), Decimal("1.0000000002")]),
    "s": (pa.string(), ["", "Z", "a", "é"]),
    "code": (pa.dictionary(pa.int8(), pa.string()), ["x", "y", "w"]),
    "b": (pa.bool_(), [False, True]),
    "day": (pa.date32(), [date(1969, 12, 31), date(2013, 1, 1), date(2013, 1, 5)]),
    "t": (ZONED, [NOON, NOON + timedelta(microseconds=1), NOON - timedelta(days=1)]),
    "nano": (pa.duration("ns"), [timedelta(0), timedelta(days=200), timedelta(days=200, microseconds=1)]),
}
TARGETS: dict[str, Any] = {"f": 0, "g": 1.25, "i": 1, "huge": BIG + 1, "day": date(2013, 1, 3), "t": NOON}


@st.composite
def tables(draw: st.DrawFn, max_size: int = 12) -> pa.Table:
    """One column of every type in VALUES, of one random length, cut into chunks at random."""
    n = draw(st.integers(0, max_size))
    arrays = {
        name: pa.array(draw(st.lists(st.sampled_from(values), min_size=n, max_size=n)), kind)
        for name, (kind, values) in VALUES.items()
    }
    table = pa.table(arrays)
    cut = draw(st.integers(0, n))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])


@st.composite
def leaves(draw: st.DrawFn, column: str) -> Leaf:
    kinds = ["low", "high", *(["around"] if column in TARGETS else [])]
    kind = draw(st.sampled_from(kinds))
    return Leaf(kind, column, TARGETS[column] if kind == "around" else None)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Any tree over different columns, whether it can be expressed or not."""
    columns = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=6, unique=True))
    nodes: list[Tree] = [Leaf("diff", c) if draw(st.integers(0, 5)) == 0 else draw(leaves(c)) for c in columns]
    while len(nodes) > 1:
        i = draw(st.integers(0, len(nodes) - 2))
        join: type[Pareto | Prior] = Pareto if draw(st.booleans()) else Prior
        nodes[i : i + 2] = [join(nodes[i], nodes[i + 1])]
    return nodes[0]


@st.composite
def expressible_trees(draw: st.DrawFn) -> Tree:
    """Levels of factors, a factor being a criterion or a chain of them; groups before the first level."""
    columns = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=7, unique=True))
    criteria: list[Tree] = [draw(leaves(c)) for c in columns]
    groups: list[Tree] = []
    if len(criteria) > 2 and draw(st.booleans()):
        groups = [Leaf("diff", columns[0])]
        criteria = criteria[1:]
    factors = _grouped(draw, criteria, Prior)
    levels = _grouped(draw, factors, Pareto) if draw(st.booleans()) else [reduce(Pareto, factors)]
    # a level that is a lone chain is several levels: allowed anywhere
    return reduce(Pareto, [*groups, reduce(Prior, levels)])


def _grouped(draw: st.DrawFn, nodes: list[Tree], join: type[Pareto | Prior]) -> list[Tree]:
    """Join runs of neighbours, cut at random."""
    joined: list[Tree] = []
    while nodes:
        size = draw(st.integers(1, len(nodes)))
        joined.append(reduce(join, nodes[:size]))
        nodes = nodes[size:]
    return joined
