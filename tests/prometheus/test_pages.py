"""The tables of docs/monitoring.md, compared with what an exporter exposes."""

from __future__ import annotations

from measure.reference import measures
from measure.tables import lines_of, text_between
from tests.checkout import ROOT
from tests.prometheus.made import full
from tests.prometheus.scraped import families, text_of

from skypane.prometheus.exporter import Exporter

PAGE = ROOT / "docs" / "monitoring.md"


def test_the_page_has_each_metric():
    table = text_between(PAGE, "measures").strip()
    assert table == measures()
    exporter = Exporter()
    exporter.streams.add("s", full())
    exposed = {family.name for family in families(text_of(exporter))}
    assert {line[0].strip("`").removesuffix("_total") for line in lines_of(table)} == exposed


def test_the_page_has_the_labels_of_each_metric():
    exporter = Exporter()
    exporter.streams.add("s", full())
    listed = {line[0].strip("`"): set(line[3].replace("`", "").split(", ")) for line in lines_of(measures())}
    for family in families(text_of(exporter)):
        for sample in family.samples:
            name = sample.name if sample.name in listed else family.name
            assert sample.labels.keys() - {"le"} == listed[name]
