"""Pages of the site that are made from public names."""

from __future__ import annotations

import inspect
import re

import pytest
from api_pages import _directive, _further_fields, _linked, _signature
from measure.reference import groups
from tests.checkout import ROOT

import skypane as sp

DOCS = ROOT / "docs"


def test_each_public_name_is_on_one_page():
    marks = re.findall(r"^<!-- api: (\w+) -->$", "\n".join(p.read_text() for p in DOCS.glob("api/*.md")), re.MULTILINE)
    assert sorted(marks) == sorted(groups())
    names = [name for mark in marks for name in groups()[mark]]
    assert sorted(names) == sorted(set(dir(sp)) - {"__version__"})


def test_fields_of_metrics_are_listed_and_those_of_options_only_if_documented():
    assert ":undoc-members:" in _directive("BatchMetrics", sp.BatchMetrics, "classes")
    assert ":undoc-members:" not in _directive("Amend", sp.Amend, "classes")
    assert ":members:" not in _directive("Skyline", sp.Skyline, "queries")


@pytest.mark.parametrize(
    ("what", "name", "expected"),
    [
        ("function", "count", ("(column: ColumnLike | None = None, *, where: ColumnLike | None = None)", "Function")),
        ("class", "Console", ("(rows: int = 20)", None)),
        ("class", "Job", ("", None)),
        ("class", "Query", ("", None)),
        ("class", "ConfigError", None),
    ],
)
def test_signatures_have_the_types_of_the_source(what: str, name: str, expected: tuple[str, str | None] | None):
    assert _signature(None, what, name, getattr(sp, name), None, None, None) == expected  # type: ignore[arg-type]


def test_a_long_default_is_an_ellipsis_and_types_of_ours_have_no_module():
    fuzzy = _signature(None, "class", "Fuzzy", sp.Fuzzy, None, None, None)  # type: ignore[arg-type]
    assert fuzzy is not None
    assert fuzzy[0].endswith("controller: FuzzyController = ...)")
    assert "batch.Invalid" in str(inspect.signature(sp.ask))
    asked = _signature(None, "function", "ask", sp.ask, None, None, None)  # type: ignore[arg-type]
    assert asked is not None
    assert "invalid: Invalid = 'error'" in asked[0]


def test_names_in_tables_are_links():
    cell = re.compile(r"^\| `(\w+)(\([^`]*\))?` \|")
    for line, expected in {
        "| `ask` | x |": "| {py:obj}`ask <skypane.ask>` |",
        "| `avg(column, where=None)` | x |": "| {py:obj}`avg(column, where=None) <skypane.avg>` |",
        "| `flights` |": "| `flights` |",
    }.items():
        found = cell.match(line)
        assert found
        assert _linked(found) == expected


def test_arguments_of_bases_follow_in_the_order_of_the_constructor():
    names = list(_further_fields(sp.AqKSlack))
    assert names[:2] == ["max_drop", "max_slack"]
    assert "max_ahead" in names
    assert "latency" not in _further_fields(sp.Model)  # its own docstring has it
