from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.preference.around import check_target, distances
from skypane.preference.criteria import Around
from skypane.types import ConfigError


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [(st.integers(-(2**63), 2**63 - 1), "int64"), (st.integers(0, 2**64 - 1), "uint64")],
    ids=["signed", "unsigned"],
)
@given(data=st.data())
def test_distances_of_whole_numbers_are_exact(numbers: st.SearchStrategy[int], kind: str, data: st.DataObject):
    lo, hi = sorted(data.draw(st.tuples(numbers, numbers)))
    values = data.draw(st.lists(numbers, max_size=5))
    found = distances(np.array(values, kind), Around("x", lo, hi), pa.type_for_alias(kind))
    assert found.tolist() == [max(lo - value, value - hi, 0) for value in values]


@pytest.mark.parametrize("target", [2.5, 2**70, -1])
def test_other_targets_are_measured_in_float64(target: float):
    found = distances(np.array([0, 3], np.uint8), Around("x", target, target), pa.uint8())
    assert found.dtype == np.float64
    assert found.tolist() == [abs(target), abs(3.0 - target)]


@pytest.mark.parametrize(("kind", "unit"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)], ids=str)
def test_times_are_measured_in_the_columns_unit(kind: str, unit: int):
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    values = np.array([int(noon.timestamp()) + 2, int(noon.timestamp()) - 3]) * unit
    found = distances(values, Around("t", noon, noon), pa.timestamp(kind, tz="UTC"))
    assert found.dtype == np.uint64
    assert found.tolist() == [2 * unit, 3 * unit]


def test_a_target_between_two_units_is_kept():
    start = datetime(1970, 1, 1, tzinfo=UTC)
    target = start + timedelta(milliseconds=1400)
    assert distances(np.array([1, 2]), Around("t", target, target), pa.timestamp("s", tz="UTC")).tolist() == [
        pytest.approx(0.4),
        pytest.approx(0.6),
    ]


def test_days():
    day = Around("d", date(1970, 1, 2), date(1970, 1, 3))
    assert distances(np.array([0, 1, 2, 5], np.int32), day, pa.date32()).tolist() == [1, 0, 0, 3]
    assert distances(np.array([0, 86_400_000]), day, pa.date64()).tolist() == [86_400_000, 0]


def test_the_same_moment_is_one_target():
    moment = datetime(2013, 1, 1, 12, tzinfo=UTC)
    elsewhere = moment.astimezone(timezone(timedelta(hours=5)))
    assert repr(Around("t", elsewhere, elsewhere)) == repr(Around("t", moment, moment))


@pytest.mark.parametrize(
    ("target", "kind", "message"),
    [
        (3, pa.string(), "needs a column of numbers, dates or timestamps, got type string"),
        (3, pa.bool_(), "got type bool"),
        (3, pa.date32(), "a column of type date32[day] needs a date as its target"),
        (date(2013, 1, 1), pa.float64(), "a column of type double needs a number as its target"),
        (date(2013, 1, 1), pa.timestamp("us"), "needs a datetime without a time zone as its target"),
        (datetime(2013, 1, 1, tzinfo=UTC), pa.timestamp("us"), "needs a datetime without a time zone"),
        (datetime(2013, 1, 1), pa.timestamp("us", tz="UTC"), "needs a datetime with a time zone"),  # noqa: DTZ001
    ],
)
def test_targets_must_fit_the_column(target, kind: pa.DataType, message: str):
    with pytest.raises(ConfigError) as error:
        check_target(Around("x", target, target), kind)
    assert message in str(error.value)
