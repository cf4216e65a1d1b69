"""Random faults: each is one change that Python reads, and what shows it is listed, once for each fault."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests import faults
from tests.checkout import ROOT

SOURCE = '''
def larger(one: int, other: int) -> int:
    """Return the larger one."""
    return one if one > other else other
'''
TEST = """
from skypane.progress.larger import larger

def test_larger():
    assert [larger(1, 2), larger(2, 1), larger(1, 1)] == [2, 2, 1]
"""


@pytest.mark.long
def test_faults_of_the_sources_are_drawn_again_and_are_of_all_kinds_and_parts():
    drawn = faults.draw(ROOT / "src", 200, seed=7)
    assert drawn == faults.draw(ROOT / "src", 200, seed=7)
    assert len({fault.id for fault in drawn}) == 200
    assert {fault.why for fault in drawn} == {"operator", "off by one", "negated", "swapped", "dropped"}
    assert [sum(fault.file.startswith(part) for fault in drawn) for part in faults.RUN] == [50] * len(faults.RUN)
    for fault in drawn:
        compile(fault.applied((ROOT / "src" / "skypane" / fault.file).read_text()), fault.file, "exec")


@pytest.mark.long
def test_what_shows_a_fault_is_listed_and_what_is_listed_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    checkout, fates = tmp_path / "checkout", tmp_path / "fates"
    module = checkout / "src" / "skypane" / "progress" / "larger.py"
    for file, text in {
        "src/skypane/__init__.py": "",
        str(module): SOURCE,
        "tests/progress/test_larger.py": TEST,
    }.items():
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / file).write_text(text)
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(faults, "RUN", {"progress": ("progress",)})
    monkeypatch.setattr(sys, "argv", ["faults", str(fates), "--checkout", str(checkout), "--count", "2"])
    faults.main()
    assert module.read_text() == SOURCE
    listed = {fate["fault"]["why"]: fate["by"] for fate in map(json.loads, fates.read_text().splitlines())}
    assert listed.keys() == {"negated", "operator"}
    assert listed["operator"] is None  # of two that are equal either one is the larger
    assert "test_larger" in listed["negated"]
    assert capsys.readouterr().out.endswith("1 of 2 killed\n")
    faults.main()
    assert capsys.readouterr().out == "1 of 2 killed\n"
