"""A value in a notebook's cell: a small table of names and values."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from skypane.naming import shortened

#: characters of a value that a cell shows; what is longer has its whole text where it came from
_SHOWN = 160


def table(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Return (name, value) pairs as an HTML table under a title; nothing in them is taken for HTML, long values are cut."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(shortened(str(value), _SHOWN))}</td></tr>'
        for name, value in pairs
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
