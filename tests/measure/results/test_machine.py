"""Whether a machine is quiet is seen from the clocks of its CPUs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from measure.results.child import use_few_cores
from measure.results.machine import CORES, OTHERS, STEAL, Clock, Use, commit, load, look, this

TICKS = os.sysconf("SC_CLK_TCK")
GIT = shutil.which("git") or ""
BURN = "import time; print('begun', flush=True)\nwhile time.process_time() < 1: pass\nprint('done', flush=True)\nwhile True: pass"


def test_clocks_are_read_in_seconds(tmp_path):
    stat = tmp_path / "stat"
    fields = (100, 10, 50, 800, 20, 3, 7, 10, 99, 99)
    stat.write_text("cpu  " + " ".join(str(field * TICKS) for field in fields) + "\ncpu0 1 2 3\n")
    assert Clock.now(stat) == Clock(busy=170.0, steal=10.0, whole=1_000.0)


def test_a_system_without_clocks_reports_nothing(tmp_path):
    assert Clock.now(tmp_path / "none") == Clock(0.0, 0.0, 0.0)
    assert Use.between(Clock(0, 0, 0), Clock(0, 0, 0), own=1.0).why_not == ""


def test_others_have_what_is_neither_idle_nor_ours():
    use = Use.between(Clock(10, 1, 100), Clock(90, 3, 200), own=60.0)
    assert use.others == pytest.approx(0.2)
    assert use.steal == pytest.approx(0.02)


def test_more_cpu_time_of_ours_than_the_clocks_show_leaves_nothing_for_others():
    assert Use.between(Clock(0, 0, 0), Clock(10, 0, 20), own=10.3).others == 0


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (Use(OTHERS, STEAL), ""),
        (Use(0.5, 0.0), "other programs had 50% of the CPU time, more than 5%"),
        (Use(0.0, 0.25), "other guests of the host had 25% of the CPU time, more than 2%"),
    ],
)
def test_a_machine_is_quiet_up_to_a_bound(use, reason):
    assert use.why_not == reason


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs /proc/stat")
def test_a_program_that_computes_is_seen():
    """As many as a tenth of the cores, each of which uses a second meanwhile."""
    programs = [
        subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE, text=True)
        for _ in range(-(-(os.cpu_count() or 1) // 10))
    ]
    try:
        outputs = [program.stdout for program in programs if program.stdout]
        assert [output.readline() for output in outputs] == ["begun\n"] * len(programs)

        def computed(_: float) -> None:
            assert [output.readline() for output in outputs] == ["done\n"] * len(programs)

        assert look(wait=computed).others > 0
    finally:
        for program in programs:
            program.kill()
            program.communicate()


def test_the_load_is_that_of_a_core(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 1.0, 0.5))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert load() == 0.75


def test_the_machine_has_a_name_and_the_cores_that_are_used():
    machine = this()
    assert machine["processor"]
    assert machine["cores"].split()[0] == str(min(CORES, len(os.sched_getaffinity(0))))


@pytest.mark.skipif(not GIT, reason="needs git")
def test_changed_pages_do_not_change_the_commit_of_the_code(tmp_path):
    def git(*arguments: str) -> None:
        owner = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        subprocess.run([GIT, "-C", str(tmp_path), *owner, *arguments], check=True, capture_output=True)

    assert commit(tmp_path) == ""
    git("init")
    assert commit(tmp_path) == ""  # there is none yet
    (tmp_path / "docs").mkdir()
    for file in ("docs/page.md", "code.py"):
        (tmp_path / file).write_text("one\n")
    git("add", ".")
    git("commit", "--message", "First")
    first = commit(tmp_path, but=("docs", "README.md"))
    assert re.fullmatch("[0-9a-f]+", first)

    (tmp_path / "docs" / "page.md").write_text("two\n")
    assert commit(tmp_path, but=("docs", "README.md")) == first
    assert commit(tmp_path) == f"{first}-dirty"
    (tmp_path / "code.py").write_text("two\n")
    assert commit(tmp_path, but=("docs", "README.md")) == f"{first}-dirty"


def test_a_program_gets_two_cores(monkeypatch):
    given = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7, 3, 5, 1})
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: given.append(cores))
    use_few_cores()
    assert given == [[1, 3]]
