from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skypane.preference import Preference
from skypane.preference.around import check_target, exact_distances, whole_distances
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
    found = whole_distances(np.array(values, kind), Around("x", lo, hi), pa.type_for_alias(kind))
    assert found is not None
    assert found.tolist() == [max(lo - value, value - hi, 0) for value in values]


NUMBERS = st.decimals(-(10**16), 10**16, allow_nan=False, places=18)


@given(st.lists(NUMBERS, min_size=1, max_size=6), st.tuples(NUMBERS, NUMBERS))
def test_distances_of_decimals_are_exact(values: list[Decimal], targets: tuple[Decimal, Decimal]):
    lo, hi = sorted(targets)
    kind = pa.decimal128(38, 18)
    found = exact_distances(pa.chunked_array([pa.array(values, kind)]), Around("x", lo, hi), kind)
    with localcontext(prec=60):
        assert found.to_pylist() == [max(lo - value, value - hi, Decimal(0)) for value in values]


@pytest.mark.parametrize("target", [2.5, -1, Decimal("2.000000000000000000001")])
def test_whole_numbers_are_as_far_from_a_fraction_as_they_are(target: float | Decimal):
    around, values = Around("x", target, target), np.array([0, 3], np.uint8)
    assert whole_distances(values, around, pa.uint8()) is None
    found = exact_distances(pa.chunked_array([values]), around, pa.uint8()).to_pylist()
    exact = Decimal(str(target))
    assert found == [abs(exact), abs(3 - exact)]


def test_a_target_beyond_all_values_keeps_their_order():
    around = Around("x", 2**70, 10**300)
    found = exact_distances(pa.chunked_array([[-(2**63), 2**63 - 1]]), around, pa.int64()).to_pylist()
    assert found[0] - found[1] == 2**64 - 1


def best(rows: pa.Table, preference: str) -> pa.Table:
    return rows.take(pa.array(Preference.of(preference).best(rows)))


def test_decimals_and_whole_numbers_beyond_float64_are_ranked():
    values = [Decimal("0.1"), Decimal("0.100000000000000001"), Decimal("0.099999999999999999")]
    rows = pa.table({
        "d": pa.array(values, pa.decimal128(38, 18)), "n": [2**60, 2**60 + 1, 2**60 + 2],
    })  # fmt: skip
    assert best(rows, "d AROUND 0.1")["d"].to_pylist() == values[:1]
    assert best(rows, "d AROUND 0.100000000000000001")["d"].to_pylist() == values[1:2]
    assert best(rows, f"n AROUND {2**60}.9")["n"].to_pylist() == [2**60 + 1]


def test_a_target_of_too_many_digits_is_refused():
    target = Decimal("0." + "1" * 70)
    with pytest.raises(ConfigError, match=r"the target has too many digits for a column of type decimal128\(38, 18\)"):
        check_target(Around("d", target, target), pa.decimal128(38, 18))


@pytest.mark.parametrize(("kind", "unit"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)], ids=str)
def test_times_are_measured_in_the_columns_unit(kind: str, unit: int):
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    values = np.array([int(noon.timestamp()) + 2, int(noon.timestamp()) - 3]) * unit
    found = whole_distances(values, Around("t", noon, noon), pa.timestamp(kind, tz="UTC"))
    assert found is not None
    assert found.tolist() == [2 * unit, 3 * unit]


def test_a_target_between_two_units_is_kept():
    start = datetime(1970, 1, 1, tzinfo=UTC)
    target = start + timedelta(milliseconds=1400)
    found = exact_distances(pa.chunked_array([[1, 2]]), Around("t", target, target), pa.timestamp("s", tz="UTC"))
    assert found.to_pylist() == [Decimal("0.4"), Decimal("0.6")]


def test_days():
    day = Around("d", date(1970, 1, 2), date(1970, 1, 3))
    for values, kind, away in (
        ([0, 1, 2, 5], pa.date32(), [1, 0, 0, 3]),
        ([0, 86_400_000], pa.date64(), [86_400_000, 0]),
    ):
        found = whole_distances(np.array(values), day, kind)
        assert found is not None
        assert found.tolist() == away


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
