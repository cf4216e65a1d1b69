"""All of src is there for users: a public name or a command leads to each module, and something in src or the docs uses each definition."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.checkout import ROOT
from tests.test_imports import Module, _module, _reached, imports, modules

# What users, Spark and the shell start from. Sources register with Spark when a public name builds a stream of them.
ENTRY_POINTS = (
    "skypane", "skypane.__main__", "skypane.public", "skypane.cli.main", "skypane.testing", "skypane.multiway.public",
)  # fmt: skip

# Modules to which no entry point leads -> why they are there.
BY_THEMSELVES = {
    "skypane.cli.__main__": "python -m skypane.cli",
    "skypane.examples": "the jobs that are shipped, files of YAML",
    "skypane.examples.traffic": "examples/cab-areas.yaml names it",
    "skypane.runtime.local": "the definition of the semantics, and the oracle of the tests",
}

# Names of definitions that nothing in src or the docs uses -> why they are there.
CALLED_BY_OTHERS = {
    "QueueEnd": "examples/cab-areas.yaml names it",
    "_can_be_built": "Pydantic calls validators",
    "_is_of_a_stream": "Pydantic calls validators",
    "_repr_svg_": "Jupyter calls it",
    "analyze": "PySpark calls it",
    "do_handshake": "the ssl module calls it",
    "on_broken_pipe": "rich calls it",
    "commit_table": "PyIceberg calls it",
    "http_open": "urllib calls it",
    "https_open": "urllib calls it",
    "handle_error": "socketserver calls it",
    "log_message": "http.server calls it",
    "process_request": "socketserver calls it",
    "process_request_thread": "socketserver calls it",
    "render_str": "rich calls it",
    "on_end": "Numba's events call it",
    "on_start": "Numba's events call it",
    "open_partitions": "paper 1, figure 9: what a simulated farm holds",
    "readable": "Python's io module calls it",
    "readinto": "Python's io module calls it",
    "redirect_request": "urllib calls it",
    "reportLatestOffset": "PySpark calls it",
    "route": "paper 3, figure 15: the nodes of keys; of a splitting policy: its first routing",
    "run_continuous": "the definition of a continuous skyline",
    "tuple_grain": "the papers' K-slack, with which ours is compared",
    "seekable": "Python's io module calls it",
    "terminate": "PySpark calls it",
    "PaneDirectory": "paper 5, Algorithms 3 and 4 in messages, with which the simulator is compared",
}


NAMING = r"[\w.:]+"
"""The strings by which registries name modules and definitions: "a.b", "a.b:c"."""


def sources() -> list[Module]:
    return modules((ROOT / "src",))


def named_modules(tree: ast.Module) -> Iterator[str]:
    """Yield what strings may name as modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(NAMING, node.value):
            yield node.value.partition(":")[0]


def unreached(checked: Collection[Module], entry_points: Collection[str]) -> list[str]:
    """Return the modules that no entry point imports, directly or indirectly; importing a module imports its packages."""
    known = frozenset(module.name for module in checked)
    found = {
        module.name: {one.name for one in imports(module, known)}
        | set(named_modules(module.tree))
        | {module.name.rpartition(".")[0]}
        for module in checked
    }
    edges = {name: to & known for name, to in found.items()}
    return sorted(
        known - frozenset(entry_points).union(*(_reached(edges, door) for door in entry_points if door in known))
    )


class Definition(NamedTuple):
    """A function, class or method, or a whole module: "path:Class.method", and the names that its own lines use."""

    name: str
    uses: frozenset[str]

    @property
    def key(self) -> str:
        return re.split(r"[.:]", self.name)[-1]

    def holds(self, other: Definition) -> bool:
        return f"{other.name}.".startswith(f"{self.name}.")


def definitions(module: Module) -> Iterator[Definition]:
    """Yield all definitions of a module; an import is a use only where it makes a name public."""
    public = module.path.endswith(("public.py", "registry.py"))
    return _definitions(module.tree, f"{module.path}:", {ast.ImportFrom} if public else set())


def _definitions(top: ast.AST, name: str, imported: set[type[ast.AST]]) -> Iterator[Definition]:
    uses: set[str] = set()
    waiting = list(ast.iter_child_nodes(top))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = f"{name}{node.name}" if name.endswith(":") else f"{name}.{node.name}"
            yield from _definitions(node, inside, set())
            continue
        waiting += ast.iter_child_nodes(node)
        match node:
            case ast.Name(id=used) | ast.Attribute(attr=used):
                uses.add(used)
            case ast.ImportFrom(names=names) if type(node) in imported:
                uses.update(alias.name for alias in names)
            case ast.Constant(value=str(text)) if re.fullmatch(NAMING, text):
                uses.update(re.split(r"[.:]", text))
    yield Definition(name, frozenset(uses))


def unused(found: Collection[Definition], used: Collection[str]) -> list[str]:
    """Return the definitions whose names nothing uses but themselves and other unused definitions.

    A name stands for all definitions that have it. Python itself uses those with two underscores before and after.
    """
    users: dict[str, list[Definition]] = defaultdict(list)
    for definition in found:
        for name in definition.uses:
            users[name].append(definition)
    candidates = [each for each in found if each.key and not each.key.startswith("__") and each.key not in used]
    dead: list[Definition] = []
    while True:
        more = [
            each
            for each in candidates
            if each not in dead and all(any(one.holds(user) for one in (each, *dead)) for user in users[each.key])
        ]
        if not more:
            return sorted(each.name for each in dead)
        dead += more


def documented() -> frozenset[str]:
    """Return the names in the code of README.md and docs/."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    code = (re.findall(r"```python\n.*?```|`[^`\n]+`", page.read_text(encoding="utf-8"), re.DOTALL) for page in pages)
    return frozenset(name for parts in code for part in parts for name in re.findall(r"\w+", part))


@pytest.mark.long
def test_a_public_name_or_a_command_leads_to_each_module():
    assert unreached(sources(), ENTRY_POINTS) == sorted(BY_THEMSELVES)


@pytest.mark.long
def test_each_definition_is_used():
    found = [definition for module in sources() for definition in definitions(module)]
    assert unused(found, documented() | CALLED_BY_OTHERS.keys()) == []


@pytest.mark.long
def test_each_exception_is_still_one():
    found = [definition for module in sources() for definition in definitions(module)]
    assert {
        name.rpartition(":")[2].rpartition(".")[2] for name in unused(found, documented())
    } >= CALLED_BY_OTHERS.keys()


PARTS = {
    "pkg/public.py": "from pkg.a import shown as shown\nimport pkg.b",
    "pkg/a.py": "def shown(): ...\ndef alone(): return alone() + helper()\ndef helper(): ...\nNAMES = 'pkg.c:told'",
    "pkg/b.py": "class Kind:\n    def __len__(self): ...\n    def lost(self): ...\nKind()",
    "pkg/c.py": "def told(): ...",
    "pkg/d.py": "from pkg.a import helper",
}


def test_what_is_not_reached_or_not_used_is_named():
    parts = [_module(Path(path), text) for path, text in PARTS.items()]
    assert unreached(parts, ["pkg.public"]) == ["pkg.d"]
    found = [definition for module in parts for definition in definitions(module)]
    assert unused(found, []) == ["pkg/a.py:alone", "pkg/a.py:helper", "pkg/b.py:Kind.lost"]
    assert unused(found, ["alone"]) == ["pkg/b.py:Kind.lost"]
