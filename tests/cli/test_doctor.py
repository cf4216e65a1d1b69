from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skypane.cli import doctor, machine_checks
from skypane.cli.machine_checks import Finding
from skypane.cli.main import main


@pytest.mark.long
def test_this_machine_is_well_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "--no-spark", "--checkpoint", str(tmp_path / "new")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok    ") for line in lines)
    assert [line.partition(":")[0][6:] for line in lines] == [
        "Python",
        "Java",
        "workers' interpreter",
        *machine_checks.COMPARED,
        "memory",
        "disk for temporary files",
        "disk for checkpoint",
        "checkpoint",
        "kernels",
        "bytecode",
        "costs",
    ]
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.usefixtures("spark")
def test_rows_pass_through_a_worker_and_back():
    finding = machine_checks.spark()
    assert finding.ok, finding
    assert sys.prefix in finding.detail


@pytest.mark.long
def test_a_failed_check_is_reported_with_its_cure_and_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "file").write_text("in the way")
    assert main(["doctor", "--no-spark", "--checkpoint", str(tmp_path / "file")]) == 1
    shown = capsys.readouterr().out
    assert f"FAIL  checkpoint: {tmp_path / 'file'}: " in shown
    assert "\n      -> choose a folder that this user can create and write\n" in shown
    assert shown.endswith("\nfailed checks: 1\n")


def test_a_check_that_breaks_is_a_finding_and_the_others_still_run():
    def broken() -> Finding:
        raise RuntimeError("cannot cache function\nat length")

    def several() -> Iterator[Finding]:
        yield Finding("a", "fine")
        yield Finding("b", "fine")

    found = list(doctor.findings([("kernels", broken), ("two", several)]))
    assert [finding.name for finding in found] == ["kernels", "a", "b"]
    assert found[0].detail == "RuntimeError: cannot cache function"
    assert not found[0].ok


def test_colours_are_for_terminals_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(doctor, "_checks", lambda *_, **__: [("a", lambda: Finding("a", "fine"))])
    main(["doctor"])
    assert capsys.readouterr().out == "ok    a: fine\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main(["doctor"])
    assert capsys.readouterr().out == "\x1b[32mok  \x1b[0m  a: fine\n"
