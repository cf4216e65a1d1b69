"""The rows that some of several queries over one stream reject: once for each reason, with the names of the queries."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from skypane.operators.entry.entry_rules import EntryRules
from skypane.operators.entry.raw_text import unpacked
from skypane.operators.entry.reject_reasons import REASON
from skypane.types import BoolArray

QUERIES = "queries"
"""Name of the column with the queries that rejected a row for the reason beside it."""


def rejected_by(rows: pa.Table, gates: Mapping[str, EntryRules]) -> pa.Table:
    """Return the rejected rows with a reason and the names of the queries that reject them for it, "best, load".

    gates   the entry rules of each query, by its name

    A row whose time is null is one row of the result, as all queries reject it for that reason. A row that is late for
    one query and has a null that another one needs is two.
    """
    masks: dict[str, dict[str, BoolArray]] = {}
    for query, gate in gates.items():
        reasons = gate.reasons(rows)
        for reason in reasons.counts():
            mask = reasons.mask(reason)
            if mask is not None:
                masks.setdefault(reason, {})[query] = mask
    parts = [_of_reason(rows, reason, by_query) for reason, by_query in masks.items()]
    return (
        pa.concat_tables(parts)
        if parts
        else named(unpacked(rows.slice(0, 0)).append_column(REASON, pa.array([], pa.string())))
    )


def named(rejected: pa.Table, query: str = "") -> pa.Table:
    """Return rows that one query has rejected with its name."""
    return rejected.append_column(QUERIES, pa.repeat(pa.scalar(query), rejected.num_rows))


def _of_reason(rows: pa.Table, reason: str, by_query: Mapping[str, BoolArray]) -> pa.Table:
    names, masks = list(by_query), np.stack([*by_query.values()])
    where = np.flatnonzero(masks.any(axis=0))
    sets, of_row = np.unique(masks[:, where], axis=1, return_inverse=True)
    texts = pa.array(
        [", ".join(name for name, inside in zip(names, chosen, strict=True) if inside) for chosen in sets.T]
    )
    queries = texts.take(pa.array(of_row.reshape(-1)))
    return (
        unpacked(rows.take(pa.array(where)))
        .append_column(REASON, pa.repeat(pa.scalar(reason), len(where)))
        .append_column(QUERIES, queries)
    )
