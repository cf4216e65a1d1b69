"""A workload that is made where it is read gives the same rows as the whole table, in whatever order they are requested."""

import pickle
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.spark.sources import generated as module
from skypane.runtime.spark.sources.generated import generated, read_parameters
from skypane.types import ConfigError

ROWS = 40_000  # several chunks
PARAMETERS = {"rate": 1_000.0, "delay": "pareto", "delay_mean": "1 second", "d": 2, "rows": ROWS, "seed": 5}
MADE = generated("poisson", PARAMETERS)
TABLE = MADE.workload.table()
ARRIVALS = TABLE.column("arrival").cast(pa.int64()).to_numpy()

row = st.integers(0, ROWS)


def sliced(start, end, since=None):
    return pa.Table.from_batches(MADE.slice(start, end, since), MADE.schema)


@pytest.fixture(autouse=True)
def _fresh():
    module._maker.cache_clear()
    module._clock.cache_clear()


@given(st.lists(st.tuples(row, row), max_size=4))
def test_any_rows_in_any_order(ranges):
    for start, end in ranges:
        assert sliced(start, end).equals(TABLE.slice(start, max(end - start, 0)))


@given(st.lists(row, min_size=2, max_size=6).map(sorted), st.permutations(range(3)))
def test_tasks_of_a_micro_batch_share_what_is_made(cuts, order):
    stream = module._maker(MADE.workload)
    for since, until in pairwise(cuts):
        thirds = [since + (until - since) * part // 3 for part in range(4)]
        for part in order:
            start, end = thirds[part], thirds[part + 1]
            assert sliced(start, end, since).equals(TABLE.slice(start, end - start))
        assert stream.first() <= since
        if len(stream.kept) > 1:
            assert stream.kept[1][0] > since  # of what was before, no more than one batch is kept


def test_ascending_tasks_make_the_stream_once(monkeypatch):
    begun = []
    restart = module._Making.restart

    def counted(stream):
        begun.append(stream)
        restart(stream)

    monkeypatch.setattr(module._Making, "restart", counted)
    for start in range(0, ROWS, 3_000):
        for part in (1, 0, 2):
            sliced(start + part * 1_000, start + part * 1_000 + 1_000, start)
    assert len(begun) == 1


@given(row, st.lists(st.integers(0, 60 * 10**6), min_size=1, max_size=5).map(sorted))
def test_due_rows_are_those_whose_time_has_come(start, elapsed):
    for time in elapsed:
        clock = None if start >= ROWS else ARRIVALS[start] + time
        expected = ROWS if clock is None else int((clock >= ARRIVALS).sum())
        assert MADE.due(start, time) == expected


def test_a_workload_that_ends_early_is_all_due_and_gives_what_it_has():
    made = generated("constant", {"rate": 10, "rows": 100, "length": "2 seconds"})
    assert made.due(0, 10**9) == 100
    assert made.due(50, 0) == 100
    assert sum(batch.num_rows for batch in made.slice(0, 100)) == 20


def test_a_task_carries_the_config_and_not_the_rows():
    assert sliced(0, ROWS).num_rows == ROWS
    assert len(pickle.dumps(MADE)) < 2_000
    assert pickle.loads(pickle.dumps(MADE)) == MADE  # noqa: S301


def test_rows_are_needed():
    with pytest.raises(ConfigError, match="a workload that is replayed needs the parameter rows"):
        generated("poisson", {"rate": 10})


@pytest.mark.parametrize("text", ["rate=10", "[1, 2]"])
def test_parameters_are_names_with_values(text):
    with pytest.raises(ConfigError, match="parameters of a workload must be"):
        read_parameters(text)
