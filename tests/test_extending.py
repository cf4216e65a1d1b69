"""What docs/extending.md says: its programs run, and what they write is a file and a line of the package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import pytest
from tests.checkout import ROOT

pytestmark = pytest.mark.pages

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
ROW = re.compile(r"^\| [\w ]+ \| `src/skypane/([\w/]+\.py)` \| `([\w/]+\.py)`: `([^`]+)` \|", re.MULTILINE)


class Row(NamedTuple):
    """A line of the page's table."""

    file: str
    registry: str
    line: str


ROWS = [Row(*found) for found in ROW.findall(PAGE)]


def run(folder: Path, *arguments: str, path: Path = ROOT / "src") -> str:
    """Run Python with the package that lies in `path`."""
    environment = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}"
    return done.stdout


def test_every_program_of_the_page_is_whole():
    """It runs unchanged (test_snippets.py) as a separate file, as a user has one."""
    assert all("if __name__ ==" in program for _, program in zip(ROWS, PROGRAMS, strict=True))


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the five, each a file in its room and a line in the room's registry."""
    folder = tmp_path_factory.mktemp("extended")
    shutil.copytree(ROOT / "src" / "skypane", folder / "skypane")
    for row, program in zip(ROWS, PROGRAMS, strict=True):
        file, registry = folder / "skypane" / row.file, folder / "skypane" / row.registry
        assert not file.exists()
        file.write_text(program.partition("\n\nif __name__ ==")[0])
        text = registry.read_text()
        last = "    # The recorded year" if row.line.startswith('"') else None
        added = text.replace(last, f"    {row.line}\n{last}") if last else f"{text}{row.line}\n"
        assert added.count("\n") == text.count("\n") + 1
        registry.write_text(added)
    again = (
        (ROOT / "src/skypane/runtime/spark/sources/many/parquet.py").read_text().replace('= "parquet"', '= "again"', 1)
    )
    many = folder / "skypane/runtime/spark/sources/many"
    (many / "again.py").write_text(again)
    with (many / "registry.py").open("a") as registry_of_kinds:
        registry_of_kinds.write("from skypane.runtime.spark.sources.many import again as again\n")
    return folder


def test_a_file_and_a_line_are_all_that_the_package_and_job_files_need(extended: Path, tmp_path: Path):
    printed = run(tmp_path, "-c", dedent("""
        import pyarrow as pa
        import skypane as sp
        from skypane.jobs import parse
        from skypane.runtime.spark.arguments import policy_of
        from skypane.runtime.spark.sinks.sink_arguments import sink
        from skypane.runtime.spark.sources.many.discovery import entry
        from skypane.runtime.spark.sources.source_names import SOURCES

        job = '''
        name: extended
        source: {format: ticks, options: {rows: 100}}
        query: {kind: aggregate, functions: {letters: longest(city)}}
        window: {time: ts, length: 1 minute}
        progress: {policy: lately, batches: 7, max_ahead: 2 days}
        workers: {elastic: {policy: steps, low: 0.4, max_workers: 6}}
        output: {format: sqlite, path: answers.db}
        late: {format: sqlite, path: late.db}
        checkpoint: state
        '''
        read = parse(job)
        assert read.progress.build() == sp.Lately(batches=7, max_ahead="2 days"), read.progress
        assert read.workers.elastic.build() == sp.Steps(low=0.4, max_workers=6)
        assert read.each_query[0].output.build() == sp.Sqlite("answers.db") and read.late.build() == sp.Sqlite("late.db")
        assert read.each_query[0].build() == sp.Aggregate(letters=sp.longest("city"))
        assert "ticks" in SOURCES
        assert {"Lately", "Steps", "Sqlite", "longest"} <= set(dir(sp))

        def complaint(call):
            try:
                call()
            except sp.ConfigError as error:
                print(error)
            else:
                raise AssertionError(call)

        complaint(lambda: parse(job.replace("lately", "latly")))
        complaint(lambda: parse(job.replace("policy: steps", "policy: stops")))
        complaint(lambda: parse(job.replace("format: sqlite", "format: sqlit")))
        complaint(lambda: parse(job.replace("longest", "largest")))
        complaint(lambda: parse(job.replace("low: 0.4", "low: 3")))
        complaint(lambda: parse(job.replace("batches: 7", "batches: 0")))
        complaint(lambda: policy_of("lately"))
        complaint(lambda: sp.WorkerOptions(elastic="steps"))
        complaint(lambda: sink(7))
        complaint(lambda: entry({"agian": "x"}, "inputs[0]"))
    """), path=extended)  # fmt: skip
    for found in (
        "progress.policy: cannot be 'latly', did you mean 'lately'",
        "workers.elastic.policy: cannot be 'stops', did you mean 'steps'",
        "output.format: cannot be 'sqlit', did you mean 'sqlite'",
        "late.format: cannot be 'sqlit'",
        "longest",
        "need 0 <= low < high, got low=3",
        "batches must be at least 1, got 0",
        "there are AqKSlack, KSlack, Readiness, Watermark, Lately",
        "Fuzzy() or Model() or Threshold() or Steps()",
        "Console, Delta, Directory, Foreach, Iceberg, Jdbc, Kafka, Memory, Table, Sqlite",
        "did you mean 'again'",
    ):
        assert found in printed, f"{found}\n{printed}"


def test_the_lists_of_docs_follow_the_registries(extended: Path, tmp_path: Path):
    """As `make reference` writes them."""
    for document in ("reference.md", "monitoring.md"):
        shutil.copy(ROOT / "docs" / document, tmp_path / document)
    for program in ("measure/reference.py", "measure/tables.py"):
        (tmp_path / program).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / program, tmp_path / program)
    run(tmp_path, "-m", "measure.reference", str(tmp_path), path=extended)
    page = (tmp_path / "reference.md").read_text(encoding="utf-8")
    for name in ("`Lately(", "`longest(", "`Steps(", "`Sqlite(", "`ticks`", "`again`"):
        assert name in page, name
