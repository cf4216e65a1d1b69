from __future__ import annotations

import pyarrow as pa
import pytest

from skypane.operators.aggregates.key_numbering import KeyNumbers

#: different keys, whose nulls lie where other keys have the numbers beside 0
KEYS = [(a, b) for a in (None, 0, 1, 2, 3) for b in (None, 0, 1, 2, 3)]


@pytest.mark.parametrize("kind", [pa.int64(), pa.date32(), pa.string()])
def test_null_is_a_separate_key_in_each_column(kind: pa.DataType):
    keys = pa.table(
        {
            name: pa.array(column, pa.int32()).cast(kind)
            for name, column in zip("ab", zip(*KEYS, strict=True), strict=True)
        }
    )
    known = KeyNumbers(keys.schema)
    assert known.numbers(keys).tolist() == list(range(len(KEYS)))
    backwards = list(reversed(range(len(KEYS))))
    assert known.numbers(keys.take(backwards)).tolist() == backwards
    assert known.count == len(KEYS)
