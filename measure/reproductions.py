"""Measure the papers' figures again, with a verdict on each claim: docs/reproductions.md.

    python -m measure.reproductions [docs [NAME ...]]

measures every figure, or those that are named, and keeps the other parts of the page. With TRACES=FOLDER the figures of
paper 5 that the paper ran on published rates use these rates.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from measure.tables import replace_between
from skypane_papers import page, registry
from skypane_papers.figure import measure

_MARK = "figures"


def parts(document: Path) -> dict[str, str]:
    """Return the page's parts by the figure that they speak of."""
    written = document.read_text(encoding="utf-8").partition(f"<!-- {_MARK} -->")[2].partition(f"<!-- /{_MARK} -->")[0]
    found = re.split(r"^## ", written, flags=re.MULTILINE)[1:]
    return {part.partition(":")[0]: f"## {part.strip()}" for part in found}


def main(docs: Path, chosen: list[str], traces: Path | None = None) -> None:
    """Measure figures and put them into the page, in the order of the list."""
    document = docs / "reproductions.md"
    for name in chosen or registry.names():
        told = page.text(measure(name, registry.figure(name), traces=traces))
        sys.stdout.write(f"{told}\n\n")
        known = parts(document) | {name: told}
        ordered = [known[name] for name in registry.names() if name in known]
        replace_between(document, _MARK, "\n\n".join(ordered))


if __name__ == "__main__":
    given = os.environ.get("TRACES")
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"), sys.argv[2:], None if given is None else Path(given))
