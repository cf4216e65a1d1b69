from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.runtime.row_parser import Malformed, RowFormat
from skypane.runtime.spark.sources.many.message_rows import tables

COLUMNS = pa.schema([("n", pa.int64()), ("s", pa.string())])
LAYOUTS = {"json": RowFormat("json", COLUMNS, ()), "csv": RowFormat("csv", COLUMNS, ("n", "s"))}
GOOD = {
    "json": [b'{"n": 7, "s": "a"}', b'{"n": 7}\n', b'{\n "n": 7,\n "s": "}{"}', b'{"s": "x", "n": 7, "m": [{}]}'],
    "csv": [b"7,a", b"7,\r\n", b'7,"x,y"'],
}
BAD = {
    "json": [
        b"",
        b"  ",
        b"7",
        b'{"n": 1}{"n": 2}',
        b'{"n": 1}\n{"n": 2}',
        b'{"n": 1',
        b"}",
        b'{"n": "x"}',
        b'{"n": {}',
    ],
    "csv": [b"", b"\n", b"7", b"7,a\n8,b", b"x,a", b"7,a,b", b'7,"x\ny"', b"7,\xff"],
}


@pytest.mark.parametrize("form", ["json", "csv"])
@given(data=st.data())
def test_each_message_is_one_row_or_is_malformed_whatever_is_beside_it(form: str, data):
    """Also where one message holds two rows and the next one none: their number alone would not show it."""
    kinds = data.draw(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), max_size=10))
    chosen = [(good, (GOOD if good else BAD)[form]) for good, _ in kinds]
    values = [texts[at % len(texts)] for (_, texts), (_, at) in zip(chosen, kinds, strict=True)]
    offsets = [3 * at for at in range(len(values))]
    found = list(tables(LAYOUTS[form], values, offsets))
    malformed = sorted(one.offset for one in found if isinstance(one, Malformed))
    assert malformed == [offset for (good, _), offset in zip(kinds, offsets, strict=True) if not good]
    rows = [one for one in found if not isinstance(one, Malformed)]
    assert all(table.schema == COLUMNS and set(table["n"].to_pylist()) == {7} for table in rows)
    assert sum(map(len, rows)) == sum(good for good, _ in kinds)
