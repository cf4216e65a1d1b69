"""A chart is an SVG that says in words what it shows, with colours for light and dark."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from measure.results.charts import DARK, LIGHT, described, fastest, rows_per_second, short
from tests.measure.results.runs import COMPARISON

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def svg() -> str:
    return rows_per_second([COMPARISON, COMPARISON], "Merging <sorted> & other inputs")


def test_the_fastest_comes_first_also_where_it_is_not_ours():
    assert fastest(COMPARISON) == ["PriorityQueue", "columnar merge", "heapq.merge"]
    assert described(COMPARISON) == "20 inputs: PriorityQueue 10.0 M, columnar merge 2.50 M, heapq.merge 500 K"


@pytest.mark.parametrize(
    ("rate", "text"),
    [(999_499, "999 K"), (999_999, "1.00 M"), (1e6, "1.00 M"), (99_960, "100 K"), (1_000, "1.00 K"), (0.4, "0")],
)
def test_rates_have_three_digits(rate, text):
    assert short(rate) == text


def test_it_has_a_title_and_a_description(svg):
    root = ET.fromstring(svg)  # noqa: S314 - what was drawn here
    assert root.get("role") == "img"
    assert [child.tag for child in root][:3] == [f"{SVG}title", f"{SVG}desc", f"{SVG}style"]
    assert root.findtext(f"{SVG}title") == "Merging <sorted> & other inputs"
    assert root.findtext(f"{SVG}desc") == "; ".join([described(COMPARISON)] * 2)


def test_texts_are_texts_and_every_way_has_its_figure(svg):
    drawn = ET.fromstring(svg).iter(f"{SVG}text")  # noqa: S314 - as above
    texts = ["".join(text.itertext()).strip() for text in drawn]
    for side in COMPARISON.sides:
        assert texts.count(side) == 2
        assert texts.count(short(COMPARISON.rate(side))) >= 2  # the axis may have it, too
    assert texts.count("20 inputs") == 2


def test_each_colour_is_defined_for_light_and_dark(svg):
    assert "prefers-color-scheme:dark" in svg
    used = {name.partition(")")[0] for name in svg.split("var(--")[1:]}
    assert used <= LIGHT.keys() == DARK.keys()
    assert "#010" not in svg  # no placeholder is left


def contrast(one: str, other: str) -> float:
    """Contrast of two colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "muted", "series-1"])
def test_texts_and_points_contrast_with_the_ground(colours, name):
    assert contrast(colours[name], colours["paper"]) >= 4.5


def test_equal_comparisons_give_equal_bytes(svg):
    assert rows_per_second([COMPARISON, COMPARISON], "Merging <sorted> & other inputs") == svg
