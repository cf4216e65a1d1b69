"""Which kernels a query says that it needs, and that it calls no others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.parameters import slow_but
from tests.rows import Bag

import skypane as sp
from skypane.kernels.families import AGGREGATES, DOMINANCE, EVERY, FRONTS, SCORES, SKYLINES
from skypane.operators import registry
from skypane.operators.fronts import ContinuousSkyline
from skypane.operators.query import Query, kernel_families

QUERIES = {
    'sp.Skyline("price MIN, rating MAX")': {SKYLINES, FRONTS},
    'sp.Skyline("price MIN, rating MAX, amount MIN", by="city")': {SKYLINES, FRONTS},
    'sp.KDominant(2, "price MIN, rating MAX, amount MIN")': {SKYLINES, FRONTS, DOMINANCE},
    'sp.TopDelta(5, "price MIN, rating MAX, amount MIN", by="city")': {SKYLINES, FRONTS, DOMINANCE},
    'sp.TopK(3, "rating - log(price)", by="city")': set(),
    'sp.Aggregate("city", n=sp.count(), s=sp.sum("price"), v=sp.variance("price"), q=sp.approx_quantile("price"))': {
        AGGREGATES
    },
}
"""Each query that answers windows, as a program writes it, and the families that it needs beside the scores of policies."""

PROGRAM = """
import sys, numpy as np, pyarrow as pa, skypane as sp
from skypane.kernels.warming import compilations, warm
from skypane.operators.query import kernel_families
query = eval(sys.argv[1])
print(len(warm(families=kernel_families([query]))))
rng = np.random.default_rng(1)
rows = pa.table({
    "city": np.repeat(np.arange(30), 200), "price": 1.0 + rng.random(6_000), "rating": rng.random(6_000), "amount": rng.random(6_000)
})
with compilations(None) as more:
    partials = [query.lift(part) for part in (rows, rows.slice(0, 3), rows.slice(100, 700))]
    query.lower(query.combine(partials))
    queue = query.queue(partials[0].schema, 4) if hasattr(query, "queue") else None
    if queue is not None:
        for pane in range(4):
            queue.push(pane, partials[pane % 3])
        queue.evict_before(0)
        queue.answer()
        queue.push(4, partials[0])
        queue.evict_before(1)
        queue.answer()
print(more)
"""


def query_of(text: str) -> Query:
    return eval(text, {"sp": sp})  # type: ignore[no-any-return] # noqa: S307 - the texts above


@pytest.mark.parametrize(("text", "families"), QUERIES.items())
def test_a_query_names_the_families_that_it_needs(text: str, families: set[str]):
    assert kernel_families([query_of(text)]) == families | {SCORES}


def test_no_query_is_left_out():
    listed = {kind for kind in vars(registry).values() if isinstance(kind, type)}
    assert {type(query_of(text)) for text in QUERIES} == listed


def test_a_continuous_skyline_needs_fronts():
    assert kernel_families([ContinuousSkyline("price MIN", "time", 10)]) == {SKYLINES, FRONTS, SCORES}


def test_of_a_query_of_users_all_are_prepared_and_of_several_queries_those_of_each():
    assert kernel_families([Bag()]) == set(EVERY)
    one, other = (query_of(text) for text in list(QUERIES)[-2:])
    assert kernel_families([one, other]) == {AGGREGATES, SCORES}


@pytest.mark.parametrize("text", slow_but((), QUERIES, [*QUERIES][3:4]))
def test_nothing_is_compiled_after_the_families_of_a_query(text: str, tmp_path: Path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, text]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    compiled, more = done.stdout.splitlines()
    assert int(compiled) > 0
    assert more == "[]"
