from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from skypane.cli import machine_checks
from skypane.runtime.resources import GIB
from skypane.runtime.spark.machine.java import JavaError


def test_an_old_python_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine_checks, "MINIMUM_PYTHON", (sys.version_info.major, sys.version_info.minor + 1))
    finding = machine_checks.python()
    assert not finding.ok
    assert sys.executable in finding.detail


def test_a_machine_without_java_gets_the_command_that_installs_one(monkeypatch: pytest.MonkeyPatch):
    def none_there():
        raise JavaError("no Java 17 or newer: found none at all; install Java")

    monkeypatch.setattr(machine_checks, "find_java", none_there)
    assert machine_checks.java().mend == "no Java 17 or newer: found none at all; install Java"


@pytest.mark.parametrize(
    ("chosen", "ok"),
    [(None, True), (sys.executable, True), ("/nowhere/python", False), ("/bin/sh", False)],
)
def test_workers_must_run_this_interpreter(chosen: str | None, ok: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if chosen is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    finding = machine_checks.worker_interpreter()
    assert finding.ok == ok
    assert ok or f"PYSPARK_PYTHON={chosen}" in finding.detail


def test_versions_are_held_against_the_bounds_of_the_package(monkeypatch: pytest.MonkeyPatch):
    assert [finding.name for finding in machine_checks.versions()] == list(machine_checks.COMPARED)
    monkeypatch.setattr(machine_checks, "version", {"pyspark": "3.5.9", "pandas": "3.0.0"}.get)
    old = machine_checks._version("pyspark", Requirement("pyspark>=4.2"))
    assert (old.detail, old.mend) == ("3.5.9, but >=4.2 is required", "run: pip install 'pyspark>=4.2'")


def test_only_bounds_that_hold_here_are_requested():
    needs = [
        Requirement(text) for text in ("numpy>=2.0", "numpy>=2.1; python_version >= '3.13'", "numpy<2.3; extra == 'x'")
    ]
    by_python = {
        python: machine_checks.bounds("numpy", needs, {"python_version": python, "extra": ""})
        for python in ("3.12", "3.13")
    }
    assert {python: "2.0.2" in need.specifier for python, need in by_python.items()} == {"3.12": True, "3.13": False}
    assert all("2.3.1" in need.specifier for need in by_python.values())


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(machine_checks, "version", missing)
    assert machine_checks._version("numba", Requirement("numba>=0.61")).detail == "not installed"
    monkeypatch.setattr(machine_checks, "requires", missing)
    assert [finding.mend for finding in machine_checks.versions()] == ["run: pip install skypane"]


def test_too_little_memory_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine_checks, "memory_bytes", lambda: GIB // 2)
    assert machine_checks.memory().mend == "give the machine or container at least 2 GiB"


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "not" / "made" / "yet"
    assert all(finding.ok for finding in machine_checks.disk(str(place)))
    monkeypatch.setattr(machine_checks, "MINIMUM_DISK", 1 << 60)
    assert [finding.name for finding in machine_checks.disk(str(place)) if not finding.ok] == [
        "disk for temporary files",
        "disk for checkpoint",
    ]
    assert [finding.name for finding in machine_checks.disk("s3://bucket/checkpoint")] == ["disk for temporary files"]


@pytest.mark.parametrize("as_uri", [False, True])
def test_a_checkpoint_is_made_tried_and_left_empty(tmp_path: Path, as_uri: bool):
    folder = tmp_path / "deep" / "checkpoint"
    assert machine_checks.checkpoint_directory(folder.as_uri() if as_uri else str(folder)).ok
    assert not list(folder.iterdir())


def test_a_checkpoint_of_an_unknown_kind_is_refused():
    finding = machine_checks.checkpoint_directory("nosuch://bucket/checkpoint")
    assert not finding.ok
    assert "nosuch" in finding.detail


@pytest.mark.long
def test_kernels_that_no_other_process_finds_are_reported(monkeypatch: pytest.MonkeyPatch):
    assert machine_checks.kernels().ok
    monkeypatch.setattr(machine_checks, "_COUNT_COMPILED", "print(3)")
    finding = machine_checks.kernels()
    assert finding.detail == "3 kernels would be compiled again in each process"
    assert finding.mend is not None
    assert "NUMBA_CACHE_DIR" in finding.mend
