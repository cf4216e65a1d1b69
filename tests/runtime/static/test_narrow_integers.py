"""Integers are as wide again as they were, whatever they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skypane.runtime.narrow_integers import FEWEST, narrowed
from skypane.runtime.table_batching import decoded, encoded

LAST = 2**63 - 1
SPANS = st.sampled_from([0, 1, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**62, 2**64 - 1])


@given(st.lists(SPANS, min_size=3, max_size=3), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=40)
def test_a_table_is_the_same_when_it_has_travelled(spans: list[int], seed: int, missing: bool):
    rng = np.random.default_rng(seed)
    places = []
    for span in spans:
        begin = -LAST - 1 if span > LAST else int(rng.integers(-LAST - 1, LAST - span + 1))
        drawn = [begin + int(rng.integers(0, 2**62)) % (span + 1) for _ in range(FEWEST - 2)]
        places.append([begin, begin + span, *drawn])
    matrix = np.array(places).T.copy()
    table = pa.table(
        {
            "key": pa.array(matrix[:, 0].tolist(), mask=rng.random(FEWEST) < 0.1 if missing else None),
            "text": [str(number) for number in range(FEWEST)],
            "state": pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), 3),
        }
    ).replace_schema_metadata({"of": "a query"})
    for part in (table, table.slice(5), table.slice(0, 0)):
        found = decoded(encoded(part))
        assert found.equals(part)
        assert found.schema.equals(part.schema, check_metadata=True)


def test_a_column_of_one_value_takes_no_room_and_small_ones_a_byte():
    table = pa.table({"same": [2**40] * 4_096, "small": [10**15 + number % 200 for number in range(4_096)]})
    assert narrowed(table).nbytes == 4_096
    assert decoded(encoded(table.select(["same"]))).equals(table.select(["same"]))


@pytest.mark.parametrize("rows", [0, 1, FEWEST - 1])
def test_small_tables_are_left_as_they_are(rows: int):
    table = pa.table({"key": pa.array(range(rows), pa.int64())})
    assert narrowed(table) is table
    assert decoded(encoded(table)).equals(table)
