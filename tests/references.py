"""What docs, docstrings and comments refer to is there: files, sections, names, commands. `python -m tests.references` lists what is not.

Read from the sources as texts, so that it runs in a second and without the package's dependencies.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.checkout import ROOT

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
_FILE = re.compile(r"(?<![\w/.*<>{}\-])((?:[\w-]+/)*[\w-]+\.(?:py|md|svg|yaml|html))\b(?!\.\w|\()")
_SECTION = re.compile(r"\b(design|[\w/-]+\.md), \"([^\"]+)\"")
_COMMAND = re.compile(r"`skypane ([a-z]+)\b")
_TYPED = re.compile(r"^skypane ([a-z]+)\b", re.MULTILINE)
_GOAL = re.compile(r"`make ([a-z][\w-]*)")
_MODULE = re.compile(r"python -m ((?:measure|tests|skypane)(?:\.[a-z]\w*)*)(?![\w.]*[A-Z])")

EXAMPLES: Final = frozenset(
    "JOB.yaml INPUTS.yaml inputs.yaml job.yaml my-job.yaml cab-areas.html meter-load.html board.html flights-board.html "
    "rate.html departures.yaml departures.html best.yaml sales.yaml cores.svg bursty.svg best_offers.py test_offers.py "
    "src/skypane/progress/lately.py src/skypane/operators/aggregates/longest.py src/skypane/control/elasticity/steps.py "
    "src/skypane/runtime/spark/sinks/sqlite.py src/skypane/runtime/spark/sources/ticks.py "
    "src/skypane/runtime/spark/sources/many/NAME.py".split()
)
"""Files that a user has, or makes, in examples."""


class Place(NamedTuple):
    """A line of a file."""

    file: Path
    line: int

    def __str__(self) -> str:
        """As editors read it."""
        return f"{self.file.relative_to(ROOT)}:{self.line}"


@cache
def files() -> frozenset[str]:
    """Return the files of the project: those that git knows, and those that it would add."""
    if not (ROOT / ".git").exists():  # what was unpacked of a source distribution
        rooms = [ROOT / room for room in ("src", "papers", "tests", "docs", "measure")]
        found = [*(file for room in rooms for file in room.rglob("*")), *ROOT.glob("*.*")]
        return frozenset(file.relative_to(ROOT).as_posix() for file in found if file.is_file())
    texts = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - whichever git there is
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return frozenset(texts.stdout.splitlines())


def pages() -> list[Path]:
    """Return the pages that people read."""
    return [ROOT / name for name in sorted(files()) if name.endswith(".md")]


def sources() -> list[Path]:
    """Return the modules."""
    return [ROOT / name for name in sorted(files()) if name.endswith(".py")]


def dead() -> Iterator[str]:
    """Yield a line for each reference to something that is not there."""
    for page in pages():
        yield from _dead_links(page)
        shown = "".join(re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE))
        yield from (
            f"{page.name}: there is no command skypane {verb}"
            for verb in _TYPED.findall(shown)
            if verb not in commands()
        )
    for place, text in texts():
        yield from (f"{place}: {problem}" for problem in _wrong(place.file, text))


def texts() -> Iterator[tuple[Place, str]]:
    """Yield what pages, docstrings and comments say, with where it stands."""
    for page in pages():
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            yield Place(page, number), line
    for source in sources():
        yield from _docstrings(source)
        yield from _comments(source)


def _docstrings(source: Path) -> Iterator[tuple[Place, str]]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield Place(source, node.lineno), " ".join(node.value.value.split())


def _comments(source: Path) -> Iterator[tuple[Place, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            yield Place(source, token.start[0]), token.string


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the sections of a page, as links to them are written."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return frozenset(_anchor(title) for title in titles(text))


def titles(text: str) -> list[str]:
    """Return the titles of sections."""
    return re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)


def _anchor(title: str) -> str:
    """Return a title as hosts of code write it in a link: letters, digits and hyphens."""
    bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", bare.lower()).replace(" ", "-")


def _dead_links(page: Path) -> Iterator[str]:
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), page.read_text(encoding="utf-8"))
    for number, line in enumerate(text.splitlines(), 1):
        for link in _LINK.findall(line):
            target, _, section = link.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            there = (page.parent / target).resolve() if target else page
            if not there.exists():
                yield f"{Place(page, number)}: {target} is not there"
            elif section and there.suffix == ".md" and section not in anchors(there):
                yield f"{Place(page, number)}: {there.name} has no section #{section}"


def _wrong(file: Path, text: str) -> Iterator[str]:
    for name in _FILE.findall(text):
        if not is_file(name, file) and name not in EXAMPLES:
            yield f"there is no file {name}"
    for page, section in _SECTION.findall(text):
        there = ROOT / ("docs/design.md" if page == "design" else page)
        if there.exists() and section not in titles(there.read_text(encoding="utf-8")):
            yield f"{page} has no section {section!r}"
    yield from (f"there is no command skypane {verb}" for verb in _COMMAND.findall(text) if verb not in commands())
    yield from (f"the Makefile has no goal {goal}" for goal in _GOAL.findall(text) if goal not in goals())
    yield from (f"there is no module {module}" for module in _MODULE.findall(text) if not is_module(module.rstrip(".")))


def is_file(name: str, source_page: Path) -> bool:
    """Return whether there is a file of that name: beside the one that names it, from the root, or anywhere by its end."""
    if (source_page.parent / name).exists() or name in files():
        return True
    return any(known.endswith(f"/{name}") for known in files())


@cache
def goals() -> frozenset[str]:
    """Return the goals of the Makefile."""
    return frozenset(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@cache
def commands() -> frozenset[str]:
    """Return the commands of `skypane`, those of the papers' package among them."""
    text = (ROOT / "src/skypane/cli/main.py").read_text(encoding="utf-8")
    texts = re.search(r"COMMANDS: .*?= \((.*?)\)", text, re.DOTALL)
    project = tomllib.loads((ROOT / "papers/pyproject.toml").read_text(encoding="utf-8"))["project"]
    return frozenset(re.findall(r"\w+", texts[1] if texts else "")) | set(project["entry-points"]["skypane.commands"])


def is_module(name: str) -> bool:
    """Return whether a module of ours has that name, as `python -m` takes it."""
    path = name.replace(".", "/")
    return any(
        f"{root}{path}{end}" in files() for root in ("", "src/", "papers/src/") for end in (".py", "/__main__.py")
    )


def main() -> int:
    """Print what is not there; return 1 if there is any such."""
    found = list(dead())
    print("\n".join(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
