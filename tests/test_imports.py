"""The layers' direction: each module imports only what stands below it, and nothing below the runtime does I/O."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest
from tests.checkout import ROOT

SOURCES = (ROOT / "src", ROOT / "papers" / "src")

LAYERS = (
    # Top to bottom. Those of one line are beside each other, and import nothing from each other.
    ("skypane.__main__", "skypane_papers"),
    ("skypane.cli",),
    ("skypane.demo", "skypane.jobs", "skypane.examples"),
    ("skypane.describing",),
    ("skypane.reporting",),
    ("skypane",),
    ("skypane.public",),  # its names
    ("skypane.testing", "skypane.prometheus", "skypane.opentelemetry"),
    ("skypane.monitoring",),
    ("skypane.runtime.spark", "skypane.runtime.local", "skypane.runtime.sim"),
    ("skypane.runtime.machine_costs",),
    ("skypane.runtime",),
    ("skypane.runtime.resources",),
    ("skypane.diagnosis",),
    ("skypane.datasets", "skypane.metrics"),
    ("skypane.cause",),
    ("skypane.locations",),
    ("skypane.shared_plan",),
    ("skypane.plan", "skypane.multiway"),
    ("skypane.operators",),
    ("skypane.progress", "skypane.control", "skypane.workloads", "skypane_papers.multiway"),
    ("skypane.preference", "skypane.windows", "skypane.multiway.ready_merge"),
    ("skypane.kernels",),
    ("skypane.wording",),
    ("skypane.policy",),
    ("skypane.snapshots",),
    ("skypane.types", "skypane.notebook"),  # imported everywhere
    ("skypane.naming", "skypane.lazy", "skypane.plugins", "skypane.addresses"),
)

# Below the runtime, time, chance, environment and files are arguments.
PURE_FROM = "skypane.shared_plan"
IMPURE_MODULES = frozenset(
    "asyncio concurrent glob io logging multiprocessing os pathlib py4j pyspark random secrets shutil signal socket "
    "subprocess sys tempfile threading time urllib uuid".split()
)
IMPURE_CALLS = frozenset({"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "open", "input"})
NOT_CHANCE = frozenset({"Generator", "BitGenerator", "SeedSequence"})  # np.random names that only describe an argument

# file -> import or call -> why this one may; an entry that nothing uses any more is an error.
EXCEPTIONS = {
    "skypane/kernels/compiled.py": {
        "pathlib": "Numba's cache on disk is stamped with all the sources it was built from",
        "hashlib": "the stamp of a cache depends on the text of sources, not on when they were written",
        "pickle": "Numba pickles the index of its cache; one that refers to a class that is gone counts as empty",
    },
    "skypane/kernels/turns.py": {
        "fcntl": "processes that share Numba's cache on disk compile a kernel once",
        "os": "as fcntl: the file that they lock",
        "os.open": "as fcntl: the file that they lock",
        "time": "as fcntl: nobody waits forever for a process that is suspended",
        "hashlib": "as fcntl: the byte of the file that stands for a kernel",
    },
    "skypane_papers/multiway/by_columns.py": {
        "threading": "its callers are threads, and those that share a table of panes add to it in turn",
    },
}

# Kernels know arrays, not tables or frames.
KERNELS_MAY_IMPORT = frozenset(
    "__future__ collections contextlib dataclasses enum functools itertools llvmlite math numba numpy operator skypane "
    "typing".split()
)


# Within a layer: (part, other part) that it does not import, and why.
APART = {
    (
        "skypane.runtime.spark.engine",
        "skypane.runtime.spark.sources",
    ): "the engine runs the rows of any source, and learns of inputs from metrics.InputReport",
}


class Module(NamedTuple):
    name: str
    path: str
    tree: ast.Module


class Reference(NamedTuple):
    """A module that another one imports."""

    line: int
    name: str


@cache
def modules(sources: tuple[Path, ...]) -> list[Module]:
    files = [(file, source) for source in sources for file in sorted(source.rglob("*.py"))]
    return [_module(file.relative_to(source), file.read_text(encoding="utf-8")) for file, source in files]


def _module(path: Path, text: str) -> Module:
    parts = path.with_suffix("").parts
    return Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.as_posix(), ast.parse(text))


def imports(module: Module, known: frozenset[str]) -> Iterator[Reference]:
    """Yield all imports, also those inside functions and under TYPE_CHECKING: direction is about knowing."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (Reference(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield Reference(node.lineno, inner if inner in known else base)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name if module.path.endswith("/__init__.py") else module.name.rpartition(".")[0]
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package


def layer_of(name: str) -> str | None:
    """Return the longest entry of the table that `name` lies in; the public names are not a roof over the rest."""
    if name == "skypane":
        return name
    entries = (entry for layer in LAYERS for entry in layer if entry != "skypane")
    return max((entry for entry in entries if _lies_in(name, entry)), key=len, default=None)


def depth_of(layer: str) -> int:
    return next(depth for depth, entries in enumerate(LAYERS) if layer in entries)


def violations(checked: list[Module]) -> Iterator[str]:
    known = frozenset(module.name for module in checked)
    for module in checked:
        layer = layer_of(module.name)
        if layer is None:
            yield f"{module.path}: {module.name} is in no layer; give it a place in LAYERS"
            continue
        for reference in imports(module, known):
            wrong = _wrong_import(layer, reference.name) or _wrong_part(module.name, reference.name)
            if wrong and reference.name not in EXCEPTIONS.get(module.path, ()):
                yield f"{module.path}:{reference.line}: imports {reference.name}: {wrong}"
        if depth_of(layer) >= depth_of(PURE_FROM):
            yield from _impure_calls(module)


def _wrong_import(layer: str, imported: str) -> str | None:
    top = imported.partition(".")[0]
    if top in {"skypane", "skypane_papers"}:
        target = layer_of(imported)
        if target is None:
            return "which is in no layer"
        if target != layer and depth_of(target) <= depth_of(layer):
            return f"{target} is not below {layer}"
    if depth_of(layer) >= depth_of(PURE_FROM) and top in IMPURE_MODULES:
        return "no clock, chance, environment, log or file below the runtime"
    if layer == "skypane.kernels" and top not in KERNELS_MAY_IMPORT:
        return "kernels import NumPy, Numba, LLVM and typing only"
    return None


def _wrong_part(name: str, imported: str) -> str | None:
    return next(
        (why for (part, other), why in APART.items() if _lies_in(name, part) and _lies_in(imported, other)), None
    )


def _lies_in(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def _impure_calls(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _last_name(node.func) in _LAST_NAMES:
            called = ast.unparse(node.func)
            impure = any(called == name or called.endswith(f".{name}") for name in IMPURE_CALLS)
            if impure and called not in EXCEPTIONS.get(module.path, ()):
                yield f"{module.path}:{node.lineno}: calls {called}: time and files are arguments below the runtime"
        elif isinstance(node, ast.Attribute) and _is_global_chance(node):
            yield f"{module.path}:{node.lineno}: uses {ast.unparse(node)}: chance is an argument below the runtime"


_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in IMPURE_CALLS)
"""To write a whole expression out takes long, and few calls end with one of these."""


def _last_name(called: ast.expr) -> str | None:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else None


def _is_global_chance(node: ast.Attribute) -> bool:
    return (
        node.attr not in NOT_CHANCE
        and _last_name(node.value) == "random"
        and ast.unparse(node.value) in {"np.random", "numpy.random"}
    )


@pytest.mark.long
def test_each_layer_imports_only_what_is_below_it():
    found = list(violations(modules(SOURCES)))
    assert not found, "\n" + "\n".join(found)


@pytest.mark.long
def test_only_the_room_of_the_machine_imports_py4j():
    """PySpark's package pyspark-client comes without it."""
    found = {
        module.name
        for module in modules(SOURCES)
        for reference in imports(module, frozenset())
        if _lies_in(reference.name, "py4j")
    }
    assert found == {f"skypane.runtime.spark.machine.{name}" for name in ("java_errors", "java_threads")}


def test_no_modules_import_each_other_in_a_ring():
    checked = modules(SOURCES)
    known = frozenset(module.name for module in checked)
    graph = {
        module.name: {one.name for one in imports(module, known) if one.name in known and one.name != module.name}
        for module in checked
    }
    assert rings(graph) == []


def rings(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the sets of modules that reach each other, each sorted."""
    reached = {name: _reached(graph, name) for name in graph}
    found = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted(sorted(ring) for ring in found if ring)


def _reached(graph: Mapping[str, Collection[str]], start: str) -> frozenset[str]:
    seen, waiting = set[str](), list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(graph[name])
    return frozenset(seen)


def test_a_ring_is_found_and_what_hangs_on_it_is_not_part_of_it():
    assert rings({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a"]}) == [["b", "c"]]


# Files that tools or conventions of the project name: what they are, the folder says.
CONVENTIONAL = frozenset({"__init__", "__main__", "public", "registry"})


def test_no_two_public_classes_share_a_name_and_no_two_files():
    own = [module for module in modules(SOURCES) if module.name.partition(".")[0] == "skypane"]
    classes = [
        node.name
        for module in own
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    files = [Path(module.path).stem for module in own if not module.path.startswith("skypane/cli/")]
    assert sorted(name for name, count in Counter(classes).items() if count > 1) == []
    assert sorted(name for name, count in Counter(files).items() if count > 1 and name not in CONVENTIONAL) == []


@pytest.mark.long
def test_each_exception_is_still_needed():
    checked = modules(SOURCES)
    known = frozenset(module.name for module in checked)
    used = {(module.path, reference.name) for module in checked for reference in imports(module, known)}
    called = {
        (module.path, ast.unparse(node.func))
        for module in checked
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
    }
    assert {(path, name) for path, names in EXCEPTIONS.items() for name in names} <= used | called


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("skypane/kernels/a.py", "import pyarrow", "skypane/kernels/a.py:1: imports pyarrow: kernels"),
        ("skypane/kernels/a.py", "import skypane.preference", "skypane.preference is not below skypane.kernels"),
        (
            "skypane/progress/a.py",
            "from skypane.control.splitting.pid import Pid",
            "skypane.control is not below skypane.progress",
        ),
        ("skypane/operators/a.py", "from skypane import plan", "imports skypane: skypane is not below"),
        ("skypane/operators/a.py", "import skypane as sp", "imports skypane: skypane is not below"),
        ("skypane/plan.py", "from pathlib import Path", "skypane/plan.py:1: imports pathlib: no clock"),
        ("skypane/plan.py", "def f():\n    import os.path", "skypane/plan.py:2: imports os.path: no clock"),
        ("skypane/plan.py", "if TYPE_CHECKING:\n    from pyspark.sql import Row", "plan.py:2: imports pyspark.sql"),
        ("skypane/runtime/local.py", "from skypane.runtime.spark import ledger", "skypane.runtime.spark is not below"),
        ("skypane/runtime/local.py", "from .spark.ledger import Ledger", "skypane.runtime.spark is not below"),
        ("skypane/runtime/spark/__init__.py", "from ..local import run", "skypane.runtime.local is not below"),
        (
            "skypane/progress/a.py",
            "x = datetime.datetime.now()",
            "skypane/progress/a.py:1: calls datetime.datetime.now",
        ),
        ("skypane/progress/a.py", "x = open('f')", "calls open"),
        ("skypane/progress/a.py", "x = np.random.rand(3)", "uses np.random.rand"),
        (
            "skypane/runtime/spark/engine/a.py",
            "from skypane.runtime.spark.sources.many.input_metrics import from_json",
            "the engine runs the rows of any source",
        ),
        ("skypane/extra/a.py", "", "skypane.extra.a is in no layer"),
    ],
)
def test_a_violation_is_named_with_file_line_and_import(path: str, text: str, complaint: str):
    (found,) = violations([_module(Path(path), text)])
    assert complaint in found


def test_what_the_layers_allow_passes():
    allowed = dedent("""
        from datetime import datetime, timedelta
        import numpy as np
        import pyarrow as pa
        from skypane.types import ConfigError
        from skypane.kernels import skyline_indices
        from . import other
        def f(rng: np.random.Generator): ...
    """)
    assert not list(violations([_module(Path("skypane/operators/skyline.py"), allowed)]))
    assert not list(violations([_module(Path("skypane/cli/demo.py"), "import skypane as sp\nimport os")]))
