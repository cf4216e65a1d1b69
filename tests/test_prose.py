"""Docs, docstrings, comments, messages and names of tests use the words of tests/prose/vocabulary.toml; `python -m tests.prose` lists the others."""

from __future__ import annotations

import re

import pytest
from tests.checkout import ROOT
from tests.prose.texts import PAGES, Text, of_module, of_tests, texts
from tests.prose.vocabulary import Allowed, Found, Rule, Vocabulary

pytestmark = pytest.mark.pages

VOCABULARY = Vocabulary.read()
OURS = re.compile(r"\b(?:panes?|punctuations?|PLQ|WLQ|partials?|quarantined|drain(?:s|ed)?|held rows?|rho|sigma)\b")
"""Terms of docs/glossary.md that readers of Spark's and Flink's docs do not know."""
MODULE = '''
"""Return the state.

`a door` is code, and so is this:

>>> told = 1
"""

KEY = "door"
TEXT = "two words"  # a comment
raise ValueError(f"rows is {KEY}, " "and more")
# first line
# second line
'''


@pytest.fixture(scope="module")
def project() -> list[Text]:
    return list(texts())


@pytest.fixture(scope="module")
def matches(project) -> list[Found]:
    return list(VOCABULARY.matches(project))


def words(vocabulary: Vocabulary, text: str, file: str = "page.md") -> list[str]:
    return [found.words for found in vocabulary.findings(vocabulary.matches([Text(file, 1, text)]))]


def test_the_whole_project_is_read(project):
    files = {each.file for each in project}
    modules = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("src/**/*.py") if path.read_text().strip()}
    assert {page for page in PAGES if "*" not in page} <= files
    assert "docs/decisions/README.md" in files
    assert modules <= files


def test_no_prose_breaks_a_rule(matches):
    found = [str(each) for each in VOCABULARY.findings(matches)]
    assert found == []


def test_a_page_that_uses_a_term_of_ours_links_to_the_glossary(project):
    pages = [each for each in project if each.file.startswith("docs/") and each.file != "docs/glossary.md"]
    using = [each.file for each in pages if OURS.search(each.text)]
    assert len(using) > 20
    assert [file for file in using if "glossary.md" not in (ROOT / file).read_text(encoding="utf-8")] == []


def test_every_allowance_is_needed_and_has_a_reason(matches):
    assert VOCABULARY.unused(matches) == []
    assert all(one.reason for one in VOCABULARY.allowed)


@pytest.mark.parametrize("rule", VOCABULARY.rules + VOCABULARY.for_names, ids=lambda rule: rule.example)
def test_a_rule_finds_its_example(rule: Rule):
    alone = Vocabulary((rule,))
    (found,) = alone.matches([Text("page.md", 7, rule.example)])
    assert (found.file, found.line) == ("page.md", 7)
    assert rule.use in str(found)
    assert rule.why in str(found)
    assert words(alone, rule.use) == []


def test_a_phrase_is_found_across_lines():
    assert words(VOCABULARY, "The bad readings are put\n    aside.") == ["put aside"]


def test_an_allowance_holds_for_its_file_and_text():
    allowed = Vocabulary(VOCABULARY.rules, (Allowed("page.md", "what was told to me", "a quotation"),))
    quotation = "They wrote what was told to me."
    assert words(allowed, quotation) == []
    assert words(allowed, quotation, "other.md") == ["told"]
    assert words(allowed, "They told me.") == ["told"]
    assert len(allowed.unused(())) == 1


def test_prose_of_a_module_is_its_docstrings_messages_and_comments():
    found = {
        line: " ".join(re.sub(r"`+", "", each.text).split())
        for each in of_module("m.py", MODULE)
        for line in [each.line]
    }
    assert found == {
        2: "Return the state. is code, and so is this:",
        10: "a comment",
        11: "rows is , and more",
        12: "first line second line",
    }


def test_names_docstrings_and_comments_of_tests_are_read():
    source = (
        'def test_a_stage_says_why():\n    """Return it."""  # why it ends\n\ndef helper_says(): return "two words"\n'
    )
    found = list(of_tests("tests/test_m.py", source))
    assert [(each.line, each.text) for each in found] == [
        (2, "Return it."),
        (2, "why it ends"),
        (1, "a stage says why"),
    ]
    assert [match.words for match in VOCABULARY.matches(found)] == ["says"]
