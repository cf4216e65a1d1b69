"""Tables of figures for terminals and for docs/."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def markdown_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def lines_of(table: str) -> list[list[str]]:
    """Return the lines of a table in Markdown, without its head."""
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def text_between(document: Path, mark: str) -> str:
    """Return what stands between the document's comments `<!-- mark -->` and `<!-- /mark -->`."""
    _, _, rest = document.read_text(encoding="utf-8").partition(f"<!-- {mark} -->\n")
    return rest.partition(f"<!-- /{mark} -->")[0]


def replace_between(document: Path, mark: str, text: str) -> None:
    """Put `text` between the document's comments `<!-- mark -->` and `<!-- /mark -->`."""
    check_marks(document, mark)
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, _, rest = document.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    document.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def check_marks(document: Path, mark: str) -> None:
    """Raise ValueError if the document lacks the comments `<!-- mark -->` and `<!-- /mark -->`."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if end not in document.read_text(encoding="utf-8").partition(begin)[2]:
        raise ValueError(f"{document} lacks the marks {begin} and {end}")
