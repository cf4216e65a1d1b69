"""Years that no stream was recorded in are doubted, and the unit that would fix them is named."""

from datetime import UTC, datetime

import pytest

from skypane.describing.years import credible, doubt

NOW = int(datetime(2024, 5, 1, tzinfo=UTC).timestamp())


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 1_000), ("ns", 10**9)])
def test_the_unit_that_fits_is_named(unit, per_second):
    assert doubt(NOW * per_second, (NOW + 60) * per_second, unit_assumed=True).endswith(f"--unit {unit} gives 2024")


def test_no_unit_is_named_where_none_fits():
    assert doubt(0, 100, unit_assumed=True).endswith("give --unit if they are not")


@pytest.mark.parametrize("assumed", [True, False])
def test_usual_years_raise_no_doubt(assumed):
    assert credible(NOW * 10**6, NOW * 10**6)
    assert doubt(NOW * 10**6, NOW * 10**6 + 1, unit_assumed=assumed) == ""


def test_timestamps_may_count_from_a_start_but_not_lie_ages_ahead():
    assert doubt(0, 100, unit_assumed=False) == ""
    assert doubt(NOW * 10**9, NOW * 10**9, unit_assumed=False).endswith("written in another unit?")
