"""The page of the site that is made from the schema of job files."""

from __future__ import annotations

import re

import pytest
from job_page import _default, sections, value

from skypane.jobs.schema import job_schema

SCHEMA = job_schema()
PAGE = "\n".join(sections(SCHEMA))


def test_each_section_is_on_the_page_once_and_each_link_leads_to_one():
    anchors = re.findall(r"^\((job-\w+)\)=$", PAGE, re.MULTILINE)
    assert sorted(anchors) == sorted(["job-file", *(f"job-{name.lower()}" for name in SCHEMA["$defs"])])
    assert set(re.findall(r"\(#(.*?)\)", PAGE)) <= set(anchors)


def test_titles_are_paths_in_the_file():
    titles = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert len(titles) == len(set(titles))
    assert {"`source`", "`query` `top_k`", "`queries.NAME.window`", "`workers.elastic` `fuzzy`"} <= set(titles)


def test_each_field_has_a_line():
    lines = re.findall(r"^\| `(\w+)` \|.*\|.*\|.+\|$", PAGE, re.MULTILINE)
    assert len(lines) == sum(len(part["properties"]) for part in (SCHEMA, *SCHEMA["$defs"].values()))
    assert "| `slide` | text, such as `1 hour 30 minutes` |  | distance" in PAGE
    assert '| `mode` | `stream`, `batch` | `"stream"` | ' in PAGE
    assert "| `source` | [section](#job-sourcesection) | required | " in PAGE


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}]}, "number and number"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "text, or whole number"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "by name: true or false"),
        ({"const": 3}, "`3`"),
    ],
)
def test_values_are_in_words(node: dict[str, object], expected: str):
    assert value(node, {}) == expected


@pytest.mark.parametrize(("default", "shown"), [(None, ""), ([], ""), (False, "`false`"), (0, "`0`"), ("", "")])
def test_defaults_that_are_nothing_are_not_shown(default: object, shown: str):
    assert _default({"default": default}) == shown
