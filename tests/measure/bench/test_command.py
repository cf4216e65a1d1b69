"""`make bench` from its arguments to its pages: runs real programs of small sizes into a copy of the docs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from measure.bench import programs
from measure.bench.__main__ import LOAD, main, not_quiet
from measure.results import machine
from measure.results.publish import Measured, stamp
from measure.results.record import every
from measure.tables import text_between
from tests.checkout import ROOT

PROGRAMS = ("sketches", "single_window")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A copy of the pages, with README.md above."""
    copied = tmp_path / "site" / "docs"
    copied.mkdir(parents=True)
    for page in (ROOT / "docs").glob("*.md"):
        shutil.copy(page, copied)
    shutil.copy(ROOT / "README.md", copied.parent)
    return copied


def said_by(*arguments: str) -> tuple[int, list[str]]:
    """Return the code with which a command ends, and what it has printed."""
    said: list[str] = []
    return main(arguments, said.append), said


def quick(docs: Path, *more: str) -> list[str]:
    return ["--quick", "--docs", str(docs), "--runs", str(docs.parents[1] / "runs"), *more]


@pytest.mark.long
def test_an_interrupted_run_is_continued_and_then_published(docs: Path):
    before = {page.name: page.read_text(encoding="utf-8") for page in docs.glob("*.md")}
    said: list[str] = []

    def interrupting(text: str) -> None:
        said.append(text)
        if text.startswith("[2/2]"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        main(quick(docs, "--only", *PROGRAMS), interrupting)
    assert {page.name: page.read_text(encoding="utf-8") for page in docs.glob("*.md")} == before
    (interrupted,) = every(docs.parents[1] / "runs").values()
    assert [result.name for result in interrupted.results] == ["sketches"]

    code, said = said_by(*quick(docs, "--only", *PROGRAMS))
    assert code == 0
    ((file, run),) = every(docs.parents[1] / "runs").items()
    assert said[0] == f"continues {file}, which has 1 results"
    assert said[1].startswith("[1/1] single_window: 1 of unknown time, never run before")
    assert [result.name for result in run.results] == list(PROGRAMS)
    changed = {page.name for page in docs.glob("*.md") if page.read_text(encoding="utf-8") != before[page.name]}
    assert changed == {"bench-aggregates.md", "control.md"}
    table = text_between(docs / "bench-aggregates.md", "sketches")
    assert table.startswith("| sketch | relative error | M values per CPU second |\n")
    assert table.endswith(f"\n\n{stamp(Measured(run.results[0], run))}\n")

    code, said = said_by(*quick(docs, "--only", "sketches"))
    assert code == 0
    assert said[0].startswith("[1/1] sketches: about ")
    assert len(every(docs.parents[1] / "runs")) == 2


@pytest.mark.long
def test_a_program_that_fails_does_not_stop_the_others(docs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "KINDS", {"sketches": ("none",)})  # an argument that it refuses
    code, said = said_by(*quick(docs, "--only", "sketches-none", "single_window"))
    assert code == 1
    (run,) = every(docs.parents[1] / "runs").values()
    assert [result.name for result in run.results] == ["single_window"]
    assert any("sketches-none ended with 2; its output is in" in line for line in said)
    assert said[-1] == "the same command measures these again"


def test_a_quick_run_is_never_written_into_the_docs():
    problem = "figures of a quick run are for no page: --docs needs a copy of docs/, with README.md above it"
    assert said_by("--quick", "--docs", str(ROOT / "docs")) == (2, [problem])  # before anything is measured


def test_pages_that_are_not_there_are_named_before_anything_is_measured(docs: Path):
    (docs.parent / "README.md").unlink()
    missing = f"--docs needs a folder of pages with README.md above it: there is no {docs.parent / 'README.md'}"
    for arguments in (["--docs", str(docs)], quick(docs), ["--publish", "--docs", str(docs)]):
        assert said_by(*arguments) == (2, [missing])
    assert said_by("--quick", "--publish") == (2, ["--quick --publish needs --docs, a copy of docs/"])


def test_without_a_run_nothing_is_published(tmp_path: Path, docs: Path):
    arguments = ["--publish", "--runs", str(tmp_path / "none"), "--docs", str(docs)]
    assert said_by(*arguments) == (1, ["no run has anything to publish: `make bench` makes one"])


def test_a_name_that_no_program_has_is_refused():
    assert said_by("--only", "sketches", "nothing") == (2, ["there is no program nothing: --list names them"])


def test_the_list_has_all_programs_and_why_some_are_left_out():
    code, said = said_by("--list")
    assert code == 0
    lines = {name: reason.strip() for name, _, reason in (line.partition(" ") for line in said[0].splitlines())}
    assert lines["pace"] == "its table is on no page"
    assert lines["streaming"] == ""
    assert "many_keys-native-stream" in lines


def test_a_system_without_cpu_times_of_processes_is_named(docs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "has_clocks", lambda: False)
    problem = "benchmarks need Linux: its /proc has the CPU times of processes"
    assert said_by(*quick(docs, "--only", "sketches")) == (2, [problem])


def test_a_machine_with_a_load_in_the_last_minute_is_not_quiet(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "look", lambda: machine.Use(0.0, 0.0))
    monkeypatch.setattr(machine, "load", lambda: 0.5)
    assert not_quiet(0) == "in the last minute 0.5 programs ran on each core, more than 0.25"
    monkeypatch.setattr(machine, "load", lambda: LOAD)
    assert not_quiet(0) == ""


def test_a_machine_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    uses = iter([machine.Use(0.5, 0.0), machine.Use(0.0, 0.0)])
    monkeypatch.setattr(machine, "look", lambda: next(uses))
    monkeypatch.setattr(machine, "load", lambda: 0.0)
    assert not_quiet(30) == ""
    assert next(uses, None) is None


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc/stat")
def test_a_machine_with_other_work_is_refused(tmp_path: Path):
    """A tenth of the cores compute meanwhile."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(-(-(os.cpu_count() or 1) // 10))
    ]
    try:
        code, said = said_by("--only", "sketches", "--runs", str(tmp_path))
    finally:
        for program in busy:
            program.kill()
            program.wait()
    assert code == 1
    assert said[0].startswith("this machine is not quiet: ")
    assert said[0].endswith("; stop what runs there, or measure --anyway")
    assert list(tmp_path.iterdir()) == []
