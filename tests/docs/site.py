"""What is wrong with a site as it was built: `python -m tests.docs.site build/site` lists it.

Each link within the site leads to a file and a place in it, and nothing but what a reader follows is on another host.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_ELSEWHERE: Final = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_STYLE: Final = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^)'\"\s]*", re.IGNORECASE)
_SCRIPT: Final = re.compile(
    r"(?:\bfetch|\bimport|\bimportScripts|\.open)\s*\(\s*['\"`](?:https?:)?//[^'\"`]*", re.IGNORECASE
)
_ADDRESSES: Final = ("href", "src", "srcset", "action", "data", "poster", "xlink:href")
_FOLLOWED: Final = ("a", "form", "area")
"""Elements whose addresses a browser does not load by itself."""


class Page(HTMLParser):
    """The places of a page, and its links with the element of each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the places and links of an element."""
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.places.add(value)
            if name in _ADDRESSES and value:
                self.links.append((tag, value))


def problems(site: Path) -> Iterator[str]:
    """Yield a line for each dead link, and for each thing that a page would load from another host."""
    files = [file for file in site.rglob("*.html") if "_static" not in file.relative_to(site).parts]
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    for file, page in sorted(pages.items()):
        where = file.relative_to(site)
        for tag, link in page.links:
            if _ELSEWHERE.match(link):
                if tag not in _FOLLOWED:
                    yield f"{where}: <{tag}> loads {link}"
            elif not re.match(r"(?:mailto|data):", link) and (problem := _dead(file, link, pages)):
                yield f"{where}: {problem}"
    for pattern, kind in ((_STYLE, "css"), (_SCRIPT, "js")):
        for file in sorted(site.rglob(f"*.{kind}")):
            yield from (
                f"{file.relative_to(site)}: loads {found[0]}" for found in pattern.finditer(file.read_text("utf-8"))
            )


def _dead(file: Path, link: str, pages: dict[Path, Page]) -> str | None:
    parts = urlsplit(link)
    there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if not there.exists():
        return f"{link} is not there"
    place = unquote(parts.fragment)
    if place and there in pages and place not in pages[there].places:
        return f"{link} has no such place"
    return None


def main() -> int:
    """Print what is wrong with the site of the first argument; return 1 if anything is."""
    found = list(problems(Path(sys.argv[1]).resolve()))
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
