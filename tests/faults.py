"""Small faults at random places of the sources, and which tests show them: python -m tests.faults FATES.

Each fault is put into a copy of a checkout, whose tests then run until one fails: first the files that name the module, then those
of the folders that RUN names. FATES gets a line for each; a second run goes on where the first one was ended. To compare the tests of two
checkouts, give the fates of one to the other: --like FATES draws nothing, and tries the same faults again.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest
from tests.checkout import ROOT
from tests.differential.mutants.copies import PACKAGE, mutate
from tests.differential.mutants.mutant import Mutant

RUN: Final = {
    "operators": ("operators", "differential", "preference", "engine", "runtime/test_local.py", "runtime/late"),
    "progress": ("progress", "test_policy.py", "test_windows.py", "differential", "sim", "engine", "runtime/test_local.py"),
    "runtime/spark/engine": ("model", "engine", "chaos", "runtime"),
    "runtime/spark/sinks": ("runtime/sinks", "stores", "engine", "chaos", "runtime"),
}  # fmt: skip
"""The parts of the package that get faults, as many each, and the folders and files of tests that may show them."""

_OTHERS: Final[dict[type[ast.AST], type[Any]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip
_HANGS: Final = ("-o", "faulthandler_timeout=240", "-o", "faulthandler_exit_on_timeout=true")
"""Ends a run in which a test takes so many seconds."""
_GONE: Final = "no test: its lines are not in these sources"
_LEFT_OUT: Final = (".git", ".venv*", ".hypothesis", ".*_cache", "build", "dist")


def draw(sources: Path, count: int, seed: int) -> list[Mutant]:
    """Return random faults, as many of each part of the package, each of a random kind."""
    generator, drawn = random.Random(seed), list[Mutant]()
    for part in RUN:
        kinds: dict[str, list[Mutant]] = {}
        for path in sorted((sources / PACKAGE / part).rglob("*.py")):
            for fault in faults(path, str(path.relative_to(sources / PACKAGE))):
                kinds.setdefault(fault.why, []).append(fault)
        chosen: dict[str, Mutant] = {}
        while len(chosen) < count // len(RUN):
            fault = generator.choice(kinds[generator.choice(sorted(kinds))])
            chosen[fault.id] = fault
        drawn += chosen.values()
    return drawn


def faults(path: Path, name: str) -> Iterator[Mutant]:
    """Yield all faults that can be put into a module; the lines that they change stand there once."""
    source = path.read_text()
    lines = source.encode().splitlines(keepends=True)
    for kind, node, other in chain.from_iterable(map(_changes, ast.walk(ast.parse(source)))):
        old = b"".join(lines[node.lineno - 1 : node.end_lineno])
        end = len(old) - len(lines[node.end_lineno - 1]) + node.end_col_offset
        text = ast.unparse(ast.fix_missing_locations(other))
        new = old[: node.col_offset] + (text if kind == "dropped" else f"({text})").encode() + old[end:]
        if source.count(old.decode()) == 1:
            yield Mutant(f"{name}:{node.lineno}:{node.col_offset} {kind}", name, old.decode(), new.decode(), kind)


def _changes(node: ast.AST) -> Iterator[tuple[str, Any, ast.AST]]:
    """Yield faults of a node: of which kind, what of it is replaced, and by what."""
    match node:
        case ast.Compare(left, [operator], right):
            yield "operator", node, ast.Compare(left, [_OTHERS[type(operator)]()], right)
        case ast.BoolOp(operator, values):
            yield "operator", node, ast.BoolOp(_OTHERS[type(operator)](), values)
        case ast.BinOp(one, operator, two) if type(operator) in _OTHERS:
            yield "operator", node, ast.BinOp(one, _OTHERS[type(operator)](), two)
        case ast.Constant(value) if type(value) is int:
            yield "off by one", node, ast.Constant(value + 1)
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield "negated", test, ast.UnaryOp(ast.Not(), test)
        case ast.Call(called, [one, two, *rest], named) if ast.dump(one) != ast.dump(two) and not _is_starred(one, two):
            yield "swapped", node, ast.Call(called, [two, one, *rest], named)
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield "dropped", node, ast.Pass()


def _is_starred(*nodes: ast.AST) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)


class Place:
    """A copy of a checkout, in which one fault after the other is tried."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        shutil.copytree(checkout, folder, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
        (folder / ".pytest_cache").symlink_to(checkout / ".pytest_cache")
        self._python, self._folder = checkout / ".venv" / "bin" / "python", folder

    def fate(self, fault: Mutant, tests: Sequence[str], options: Sequence[str], seconds: float) -> str | None:
        """Return what shows the fault: a test that fails, or hangs; None if nothing has in that time."""
        module = self._folder / "src" / PACKAGE / fault.file
        before, imported = module.read_bytes(), f"{PACKAGE}.{fault.file.removesuffix('.py').replace('/', '.')}"
        named = [
            f"{path}" for path in sorted((self._folder / "tests").rglob("test_*.py")) if imported in path.read_text()
        ]
        try:
            mutate(self._folder / "src", fault)
            until, runs = time.monotonic() + seconds, filter(None, [named, *([name] for name in tests)])
            return next((by for some in runs if (by := self._killer(some, options, until))), None)
        finally:
            module.write_bytes(before)

    def _killer(self, tests: Sequence[str], options: Sequence[str], until: float) -> str | None:
        """Run some tests, in a process of their own: pytest runs a file with its folder if it is given both."""
        path = os.pathsep.join([str(self._folder / "src"), str(self._folder)])
        command = [str(self._python), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *_HANGS, *options, *tests]
        own = {"PYTHONPATH": path, "HYPOTHESIS_PROFILE": "ci", "TMPDIR": str(self._folder.parent)}
        log = self._folder / "log"  # a pipe would be open for as long as anybody lives who has inherited it
        with log.open("w") as out, subprocess.Popen(
            command, cwd=self._folder, env=os.environ | own, stdout=out, stderr=out, start_new_session=True
        ) as process:  # fmt: skip
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                return None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        output = log.read_text(errors="replace").splitlines()
        bad = [line for line in output if line.startswith(("FAILED tests", "ERROR tests", "Timeout ("))]
        return (
            None
            if process.returncode in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
            else (bad or output or ["it ended"])[0][:200]
        )


def main() -> None:
    """Try faults, and sum up how many were killed."""
    given = _arguments()
    known = _read(given.fates)
    drawn = [Mutant(**each["fault"]) for each in _read(given.like).values()] if given.like else None
    todo = [fault for fault in drawn or draw(given.checkout / "src", given.count, given.seed) if fault.id not in known]
    places: SimpleQueue[Place] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="skypane-faults-") as folder, ThreadPoolExecutor(given.jobs) as pool:
        for number in range(given.jobs):
            places.put(Place(given.checkout, Path(folder, f"{number}")))

        def tried(fault: Mutant) -> dict[str, Any]:
            place, began = places.get(), time.monotonic()
            part = next(part for part in RUN if fault.file.startswith(f"{part}/"))
            tests = [name for name in (f"tests/{folder}" for folder in RUN[part]) if (given.checkout / name).exists()]
            try:
                by = place.fate(fault, given.tests or tests, given.options.split(), given.seconds)
            except ValueError:
                by = _GONE
            finally:
                places.put(place)
            return {"fault": fault.__dict__, "by": by, "seconds": round(time.monotonic() - began)}

        with given.fates.open("a") as fates:
            for fate in pool.map(tried, todo):
                print(fate["fault"]["id"], f"killed by {fate['by']}" if fate["by"] else "SURVIVED", flush=True)
                print(json.dumps(fate), file=fates, flush=True)
    every = [fate["by"] for fate in _read(given.fates).values() if fate["by"] != _GONE]
    print(f"{len(every) - every.count(None)} of {len(every)} killed")


def _read(fates: Path) -> dict[str, Any]:
    """Return the fates of a file by their faults, none if there is no file."""
    lines = fates.read_text().splitlines() if fates.exists() else []
    return {fate["fault"]["id"]: fate for fate in map(json.loads, lines)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("fates", type=Path, help="a file of JSON lines")
    parser.add_argument("tests", nargs="*", help="what is run for each fault, instead of the folders of RUN")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="of which sources and tests are tried")
    parser.add_argument("--like", type=Path, help="the fates of another run, whose faults are tried again")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at once")
    parser.add_argument(
        "--seconds", type=float, default=1800.0, help="for each fault; what no test has shown then survives"
    )
    parser.add_argument("--options", default="", help='of pytest: --options="-m test"')
    return parser.parse_args()


if __name__ == "__main__":
    main()
