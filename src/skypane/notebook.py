"""A value in a notebook's cell: a small table of names and values."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def table(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Return (name, value) pairs as an HTML table under a title; nothing in them is taken for HTML."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in pairs
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
