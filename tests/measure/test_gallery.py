"""The page shows every generator, and its figures are light, whole and the same each time."""

import re
import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import pytest
from measure.workload_gallery.__main__ import plates, section
from measure.workload_gallery.arrivals import rate, rates
from measure.workload_gallery.content import keys_of
from measure.workload_gallery.disorder import delayed
from measure.workload_gallery.plate import Panel, Plate, Row
from tests.checkout import ROOT

from skypane.workloads import ARRIVALS, DELAYS, Constant, ConstantFleet, NoDelay, UniformDelay, Zipf

DOCS = ROOT / "docs"


def line(k, axes):
    axes.plot([0, 1], [0.123456789, k / 3])


def toy():
    panels = [Panel(f"k = {k}", partial(line, k)) for k in (1, 2)]
    return Plate(
        "toy", "A toy", "`k` bends the line.", [Row(panels, "x", "y"), Row(panels[:1], "x", "y", share_y=False)]
    )


def test_a_figure_is_whole_and_the_same_each_time(tmp_path):
    path = toy().write(tmp_path)
    first = path.read_bytes()
    ET.fromstring(first)  # noqa: S314 - our own
    assert toy().write(tmp_path).read_bytes() == first
    assert b"k = 2" in first


def test_places_are_short_and_scales_are_not(tmp_path):
    drawn = toy().write(tmp_path).read_text()
    places = re.findall(r' (?:d|x|y)="([^"]*)"', drawn)
    assert places
    assert not any(re.search(r"\.\d{3}", place) for place in places)


def test_the_page_has_a_section_for_each_plate(tmp_path):
    plate = toy()
    page = section([(plate, tmp_path / "workload-toy.svg")])
    assert "### A toy\n\n`k` bends the line.\n\n![A toy](workload-toy.svg)" in page


def test_the_page_in_the_docs_shows_every_generator():
    page = (DOCS / "workloads.md").read_text(encoding="utf-8")
    for plate in plates():
        figure = DOCS / f"workload-{plate.name}.svg"
        assert f"]({figure.name})" in page
        assert figure.stat().st_size < 100_000
    for named in [*ARRIVALS.values(), *DELAYS.values()]:
        assert named.config is NoDelay or re.search(rf"`{named.config.__name__}`|{named.config.__name__} ", page)


def test_what_is_drawn():
    assert rate(Constant(100), 2, 0.5).tolist() == [100] * 4
    found = rates(ConstantFleet(20, 20, streams=3), 100, 10)
    assert found.shape == (3, 10)
    assert found.mean() == pytest.approx(20, rel=0.1)
    times, arrivals = delayed(UniformDelay("1 second"), 10, 1_000)
    assert 0 <= (arrivals - times).min() <= (arrivals - times).max() <= 2_000_000
    assert set(keys_of(Zipf(2), np.zeros(100, np.int64))) == {0, 1}
