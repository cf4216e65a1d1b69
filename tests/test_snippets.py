"""Every snippet of README and docs, unchanged: python runs, is typed, and commands end well.

Tutorials and how-to guides are only typed here: tests/test_guides.py runs them, with their commands and outputs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent

import pytest
from tests.checkout import ROOT
from tests.page_steps import GUIDES, TUTORIALS, kinds_of_blocks
from tests.page_steps import blocks as blocks  # noqa: PLC0414 - others import it from here

from skypane.jobs import parse

pytestmark = pytest.mark.pages

WITH_OUTPUTS = (*TUTORIALS, *GUIDES)
FIRST = (ROOT / "README.md", ROOT / "docs" / "start.md")
"""Their programs write files that those of other pages read."""
PAGES = (*FIRST, *sorted(set((ROOT / "docs").glob("*.md")) - {*FIRST, *WITH_OUTPUTS}))
_SHOWN = re.compile(r"(?:^    [|+].*\n)+", re.MULTILINE)
_CAB = "37.75 -122.39 0 1213084687\n37.76 -122.40 1 1213084659\n"

OWN_SESSION = """
from pyspark.sql import SparkSession
SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
"""
"""What a user has who never calls sp.session(): stock PySpark with its own settings."""


ASSIGNED = """
from pyspark.sql import functions as F

import skypane as sp

policies: list[sp.ProgressPolicy] = [sp.AqKSlack(0.01), sp.KSlack(), sp.Watermark("10 minutes"), sp.Readiness("10 minutes")]
sums = sp.Aggregate(F.upper("a"), total=sp.sum("a * b"), dear=sp.count_if(F.col("a") > 1))
queries: list[sp.Query] = [sp.Skyline(sp.low(F.col("a") * 2)), sp.TopK(3, F.col("a") % 2), sums]
workers = [sp.WorkerOptions(elastic=one) for one in (sp.Fuzzy(), sp.Model(), sp.Threshold())]
"""
"""What a program assigns where a policy, a query or a column is expected."""

IN_ONE_PROCESS = """
from skypane.cli.main import main

def typed(words):
    try:
        code = main(words)
    except SystemExit as end:  # --help
        code = end.code
    assert not code, words
"""


def programs(page: Path) -> list[str]:
    """Return the programs of a page: all its blocks together, or each, where each is a whole one."""
    found = blocks(page, "python")
    return found if any("if __name__ ==" in body for body in found) else ["\n".join(found)]


def commands() -> list[str]:
    """Return what the pages say to type, except for what installs, measures, or takes minutes."""
    lines = [line for page in PAGES for body in blocks(page, "sh") for line in body.splitlines()]
    return [line for line in lines if re.match(r"skypane (generate|describe)\b", line)]


def test_every_block_of_code_is_of_a_language_that_is_tried_here():
    kinds = {page: kinds_of_blocks(page) for page in (*PAGES, *WITH_OUTPUTS)}
    tried = {"python", "sh", "yaml"}
    assert set().union(*(kinds[page] for page in PAGES)) <= tried
    assert set().union(*(kinds[page] for page in WITH_OUTPUTS)) <= tried | {"text"}


def test_every_job_file_is_a_valid_one():
    """A page may leave out what each job has."""
    common = "name: of-a-page\nsource: {format: rate}\n"
    jobs = [parse(common + body, page.name) for page in PAGES for body in blocks(page, "yaml")]
    assert jobs


def test_every_python_snippet_and_every_command_runs_unchanged(tmp_path: Path):
    """In one process for all pages, one after the other, in a session that sp.session() did not make."""
    (tmp_path / "cabspottingdata").mkdir()
    (tmp_path / "cabspottingdata" / "new_abc.txt").write_text(_CAB)
    typed = [shlex.split(command, comments=True)[1:] for command in commands()]
    run(tmp_path, "-c", f"{IN_ONE_PROCESS}\nfor words in {typed!r}:\n    typed(words)")
    files = written(tmp_path, PAGES)
    output = run(
        tmp_path,
        "-c",
        f"{OWN_SESSION}\nimport runpy\nfor file in {files!r}:\n    runpy.run_path(file, run_name='__main__')",
    )
    assert re.search(r"batch 0 .*18,000 rows, .*windows answered", output), output
    assert "|2026-01-01 07:" in output, output
    shown = [dedent(table) for table in _SHOWN.findall((ROOT / "README.md").read_text())]
    assert len(shown) == 2
    assert all(table in output for table in shown), output


def run(folder: Path, *arguments: str) -> str:
    activated = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=activated, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{arguments[-1][:2000]}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def written(folder: Path, pages: Iterable[Path]) -> list[str]:
    """Write a module for each page, or program of one; return their names."""
    files = []
    for page in pages:
        for number, program in enumerate(programs(page)):
            file = folder / f"snippet_{number}_of_{page.stem.replace('-', '_')}.py"
            file.write_text(program)
            files.append(str(file))
    return files


def test_every_python_snippet_passes_pyright(tmp_path: Path):
    """As Pylance and other editors check them: basedpyright is pyright with a node from PyPI, and "standard" its default."""
    snippets = written(tmp_path, (*PAGES, *TUTORIALS))
    (tmp_path / "assigned.py").write_text(ASSIGNED)
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(json.dumps({"include": ["*.py"], "typeCheckingMode": "standard"}))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--project", settings, "--pythonpath", sys.executable, "--outputjson"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    faults = [f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}"
              for one in found["generalDiagnostics"] if one["severity"] == "error"]  # fmt: skip
    # pyarrow makes the functions of this module when it is imported.
    assert [fault for fault in faults if not fault.endswith('of module "pyarrow.compute"')] == []
    assert found["summary"]["filesAnalyzed"] == len(snippets) + 1


def test_every_python_snippet_passes_mypy_strict(tmp_path: Path):
    """All in one run: most of it is mypy's own start."""
    snippets = written(tmp_path, (*PAGES, *WITH_OUTPUTS))
    cache = ROOT / ".mypy_cache"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", cache, *snippets],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert f"no issues found in {len(snippets)} source files" in done.stdout
