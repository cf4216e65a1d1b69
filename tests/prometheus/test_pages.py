"""The tables of docs/monitoring.md, compared with what an exporter exposes."""

from __future__ import annotations

from measure.reference import measures
from measure.tables import lines_of, text_between
from tests.checkout import ROOT
from tests.prometheus.made import full
from tests.prometheus.scraped import exposed, families

PAGE = ROOT / "docs" / "monitoring.md"


def test_the_page_has_each_metric():
    table = text_between(PAGE, "measures").strip()
    assert table == measures()
    names = {family.name for family in families(exposed(full()))}
    assert {line[0].strip("`").removesuffix("_total") for line in lines_of(table)} == names


def test_the_page_has_the_labels_of_each_metric():
    listed = {line[0].strip("`"): set(line[3].replace("`", "").split(", ")) for line in lines_of(measures())}
    for family in families(exposed(full())):
        for sample in family.samples:
            name = sample.name if sample.name in listed else family.name
            assert sample.labels.keys() - {"le"} == listed[name]
