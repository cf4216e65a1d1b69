"""Marks in pages: comments where the pages are read beside the sources, and parts of a page on the site.

    <!-- toctree -->  a list of links  <!-- /toctree -->     the list, and its pages in the navigation
    <!-- toctree: Title -->                                  the same under a title
    <!-- include: ../CHANGELOG.md -->  a link  <!-- /include -->   the text of that file without its title

Links to a file that a page includes lead to that page.
"""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_TOCTREE = re.compile(
    r"^<!-- toctree(?:: (?P<title>.+?))? -->\n(?P<list>.*?)^<!-- /toctree -->$", re.DOTALL | re.MULTILINE
)
_INCLUDE = re.compile(r"^<!-- include: (\S+) -->\n.*?^<!-- /include -->$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!\w+:)([^()\s#]+)")
_PAGE = re.compile(r"\]\(([^()\s#]+)\.(?:md|ipynb)\)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _expand)
    return {"parallel_read_safe": True}


def _expand(app: Sphinx, page: str, source: list[str]) -> None:
    path = Path(app.srcdir) / f"{page}.md"

    def included(mark: re.Match[str]) -> str:
        file = (path.parent / mark[1]).resolve()
        app.env.note_dependency(str(file))
        return relinked(file.read_text(encoding="utf-8").partition("\n")[2], file.parent, path.parent, pages)

    pages = including(Path(app.srcdir))
    text = relinked(source[0], path.parent, path.parent, pages)
    source[0] = _TOCTREE.sub(_toctree, _INCLUDE.sub(included, text))


def including(docs: Path) -> dict[Path, Path]:
    """Return the pages that include a file, by that file."""
    found = ((page, _INCLUDE.search(page.read_text(encoding="utf-8"))) for page in docs.glob("*.md"))
    return {(page.parent / mark[1]).resolve(): page for page, mark in found if mark}


def relinked(text: str, folder: Path, to: Path, pages: dict[Path, Path]) -> str:
    """Return a text of `folder` with its links as they are written in the folder `to`, to pages rather than to what they include."""

    def link(found: re.Match[str]) -> str:
        file = (folder / found[1]).resolve()
        return f"]({relpath(pages.get(file, file), to)}" if file.exists() else found[0]

    return _LINK.sub(link, text)


def _toctree(mark: re.Match[str]) -> str:
    title = f":caption: {mark['title']}\n" if mark["title"] else ""
    pages = "\n".join(_PAGE.findall(mark["list"]))
    return f"{mark['list']}\n```{{toctree}}\n:hidden:\n{title}\n{pages}\n```"
