"""Docstrings as the site shows them."""

from __future__ import annotations

from inspect import getdoc

import pytest
from docstrings import inline, markup

from skypane.jobs.field_texts import argument_texts, rows

NAMES = ("ask", "stream", "AqKSlack", "Windows", "sum")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a `code` and more", r"a \ ``code``\  and more"),
        ("error**2, a_b_ and |x|", r"error\*\*2, a\_b\_ and \|x\|"),
        ("see ask() for it", r"see \ :py:obj:`ask() <skypane.ask>`\  for it"),
        ("or Windows.of(length)", r"or \ :py:obj:`Windows.of <skypane.Windows.of>`\ (length)"),
        ("of AqKSlack, by default", r"of \ :py:obj:`AqKSlack <skypane.AqKSlack>`\ , by default"),
        ("total=sp.sum(x)", r"total=\ :py:obj:`sp.sum <skypane.sum>`\ (x)"),
        ("Windows of an hour, the sum", "Windows of an hour, the sum"),
        ("tp = sum(x)", "tp = sum(x)"),
        ("docs/limits.md says", r"\ :doc:`docs/limits.md </limits>`\  says"),
        ("basket() of unmask()", "basket() of unmask()"),
    ],
)
def test_code_is_literal_and_public_names_are_links(text: str, expected: str):
    assert inline(text, NAMES) == expected


def test_a_table_becomes_a_list_of_fields():
    lines = [
        "Return it.",
        "",
        "Two are required:",
        "a, b   both",
        "       of them",
        "**c    the `rest`",
        "",
        "The end.",
    ]
    assert markup(lines, ()) == [
        "Return it.",
        "",
        "Two are required:",
        "",
        ":param a, b: both of them",
        r":param \*\*c: the \ ``rest``\ ",
        "",
        "The end.",
        "",
    ]


@pytest.mark.parametrize("lines", [["No  table", "of lines"], ["a  one", "two"], ["Words before", "a    table"]])
def test_other_blocks_are_not_tables(lines: list[str]):
    assert rows(lines) == (lines, [])


def test_a_list_is_separate_from_the_text_around_it():
    assert markup(["Laws:", "  - one", "    more", "  - two", "The end"], ()) == [
        "Laws:", "", "  - one", "    more", "  - two", "", "The end", "",
    ]  # fmt: skip


def test_indented_blocks_and_doctests_are_as_they_are():
    assert markup(["    a*b", "", ">>> f_(1)", "2"], ()) == [
        ".. code-block:: text",
        "",
        "    a*b",
        "",
        ">>> f_(1)",
        "2",
        "",
    ]


def test_names_of_a_table_have_their_meanings():
    assert argument_texts(getdoc(argument_texts) or "") == {}
    assert argument_texts("It.\n\nx, y   where\nn      how\n       many") == {
        "x": "where",
        "y": "where",
        "n": "how many",
    }
