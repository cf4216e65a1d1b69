"""A table of docs/versions.md with one line per setting; a setting that is tried again replaces its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from measure.tables import markdown_table, replace_between
from measure.versions.lock import ROOT

PAGE: Final = ROOT / "docs" / "versions.md"
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """A table between two marks of a page, whose first column names the setting, and whose last but two its result."""

    mark: str
    head: Row
    page: Path = PAGE

    def rows(self) -> dict[str, Row]:
        """Return the rows that the page has, by the names of their settings."""
        page = self.page.read_text(encoding="utf-8")
        table = page.partition(f"<!-- {self.mark} -->")[2].partition(f"<!-- /{self.mark} -->")[0]
        rows = [
            tuple(cell.strip() for cell in row.split("|")) for row in re.findall(r"^\| (.*) \|$", table, re.MULTILINE)
        ]
        return {row[0]: row for row in rows[2:]}

    def record(self, names: Iterable[str], new: Mapping[str, Row]) -> None:
        """Put new rows among those there are, in the order of the names; a name that was never tried says so."""
        known = self.rows() | dict(new)
        blank = ("",) * (len(self.head) - 4)
        rows = [known.get(name, (name, *blank, "not tried", "", "")) for name in names]
        replace_between(self.page, self.mark, markdown_table(self.head, rows))
