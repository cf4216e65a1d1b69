"""The site as `make docs` builds it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.checkout import ROOT
from tests.docs.site import problems

import skypane as sp


def test_all_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path):
    assert list(problems(site.resolve())) == []
    assert len(list(site.rglob("*.html"))) > 60


def test_each_page_beside_the_sources_is_a_page_of_the_site(site: Path):
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in ROOT.glob("docs/**/*.md")}
    assert [page for page in pages if not (site / page).exists()] == []


def test_search_knows_each_public_name_and_pages_by_their_words(site: Path):
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert set(dir(sp)) - {"__version__"} <= {entry[-1] for entry in index["objects"]["skypane"]}
    places = index["terms"]["punctuat"]
    assert "progress" in {index["docnames"][place] for place in places}


def test_marks_are_replaced(site: Path):
    assert "The site has the text of" not in (site / "changelog.html").read_text(encoding="utf-8")
    assert "Unreleased" in (site / "changelog.html").read_text(encoding="utf-8")
    assert "skypane readmit" in (site / "commands.html").read_text(encoding="utf-8")
    assert json.loads((site / "job-file.schema.json").read_text(encoding="utf-8"))["properties"]["source"]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<a href="https://example.org/x">x</a><a href="b.html#there">b</a><a href="#top">c</a>', []),
        ('<a href="c.html">x</a>', ["a.html: c.html is not there"]),
        ('<a href="b.html#nowhere">x</a>', ["a.html: b.html#nowhere has no such place"]),
        ('<script src="//example.org/x.js"></script>', ["a.html: <script> loads //example.org/x.js"]),
        ('<img src="https://example.org/x.png">', ["a.html: <img> loads https://example.org/x.png"]),
    ],
)
def test_a_dead_link_and_what_is_loaded_from_elsewhere_are_found(html: str, found: list[str], tmp_path: Path):
    (tmp_path / "a.html").write_text(f'<p id="top">{html}')
    (tmp_path / "b.html").write_text('<p id="there">')
    assert list(problems(tmp_path)) == found


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("s.css", "@import '//example.org/a.css';"),
        ("s.css", "b{src:url(https://x.org/f)}"),
        ("s.js", "fetch('https://x.org')"),
    ],
)
def test_styles_and_scripts_are_read(file: str, text: str, tmp_path: Path):
    (tmp_path / file).write_text(text)
    (found,) = problems(tmp_path)
    assert found.startswith(f"{file}: loads ")
