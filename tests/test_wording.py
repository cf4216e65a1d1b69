import pytest

from skypane.wording import clock, count, counted, percent, seconds, size, span, stamp


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.012, "12 ms"),
        (4.25, "4.2 s"),
        (210, "3.5 min"),
        (86_400, "24 h"),
        (172_800, "2 d"),
        (2e-6, "2 us"),
    ],
)
def test_seconds_are_reported_in_the_largest_unit_that_fits(value, text):
    assert seconds(value) == text


def test_words():
    assert count(336776) == "336,776"
    assert [percent(x) for x in (0.01, 0.0123, 0.00004, 1.0, None)] == ["1 %", "1.23 %", "0 %", "100 %", "n/a"]
    assert stamp(1_357_017_300_000_000) == "2013-01-01 05:15"
    assert (stamp(None), span(None), span(5_400_000_000)) == ("n/a", "n/a", "1.5 h")
    assert [size(x) for x in (0, 1023, 1 << 10, 47 << 20, 3_435_973_837)] == [
        "0 bytes",
        "1023 bytes",
        "1.0 KiB",
        "47.0 MiB",
        "3.2 GiB",
    ]
    assert [clock(x) for x in (0.9, 65, 3723)] == ["0:00", "1:05", "1:02:03"]


@pytest.mark.parametrize(
    ("number", "things", "text"),
    [
        (1, "rows", "1 row"),
        (0, "rows", "0 rows"),
        (2_000, "windows answered", "2,000 windows answered"),
        (1, "windows answered", "1 window answered"),
        (1, "late rows", "1 late row"),
        (1, "micro-batches", "1 micro-batch"),
        (1, "updates of the front", "1 update of the front"),
        (-1, "rows", "-1 rows"),
    ],
)
def test_one_thing_is_in_the_singular(number, things, text):
    assert counted(number, things) == text
