"""Spark's classes as Java has them in memory: sessions map the file, and start without it where it is of no use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark
import pytest
from tests.runtime.scenarios import lines_of

from skypane.cli.main import main
from skypane.runtime.spark.machine import class_archive
from skypane.runtime.spark.machine.class_archive import QUIET, is_whole, place, with_archive
from skypane.runtime.spark.machine.java import Java, find_java

JAVA = Java(Path("/opt/java"), "17.0.15", "PATH", vector_module=True)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKYPANE_CACHE", str(tmp_path))
    for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def archive_of(java: Java) -> Path:
    archive = place(java)
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(b"whole")
    archive.with_suffix(".size").write_text("5")
    return archive


def test_each_java_and_each_spark_has_its_own_archive(monkeypatch: pytest.MonkeyPatch):
    other = Java(Path("/opt/java"), "21.0.1", "PATH", vector_module=True)
    places = {place(JAVA), place(other)}
    monkeypatch.setattr(pyspark, "__version__", "0.0")
    assert len({*places, place(JAVA)}) == 3


def test_options_stay_as_they_are_without_an_archive():
    assert with_archive("-Da=b", JAVA) == "-Da=b"


def test_options_of_the_archive_come_last():
    archive = archive_of(JAVA)
    assert with_archive("-Da=b", JAVA) == f'-Da=b "-XX:SharedArchiveFile={archive}" {QUIET}'
    assert with_archive("", JAVA) == f'"-XX:SharedArchiveFile={archive}" {QUIET}'


@pytest.mark.parametrize("size", ["6", "", "five", None])
def test_an_archive_of_another_size_than_it_was_written_with_is_not_mapped(size: str | None):
    """Java ends with SIGBUS where it reads behind the end of a file."""
    noted = archive_of(JAVA).with_suffix(".size")
    if size is None:
        noted.unlink()
    else:
        noted.write_text(size)
    assert with_archive("-Da=b", JAVA) == "-Da=b"


def test_an_archive_that_was_cut_is_written_again(monkeypatch: pytest.MonkeyPatch):
    archive = archive_of(JAVA)
    archive.write_bytes(b"cut")
    monkeypatch.setattr(class_archive, "_start_once", lambda draft: draft.write_bytes(b"written again"))
    assert class_archive.make(JAVA)
    assert archive.read_bytes() == b"written again"
    assert is_whole(archive)


@pytest.mark.parametrize("own", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-XX:ArchiveClassesAtExit=mine.jsa"])
def test_who_decides_about_archives_is_left_alone(own: str, monkeypatch: pytest.MonkeyPatch):
    archive_of(JAVA)
    assert with_archive(own, JAVA) == own
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", own)
    assert with_archive("-Da=b", JAVA) == "-Da=b"


def test_a_user_without_a_home_has_no_archive(monkeypatch: pytest.MonkeyPatch):
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(class_archive, "cache_directory", homeless)
    assert with_archive("-Da=b", JAVA) == "-Da=b"
    assert not class_archive.make(JAVA)


def test_a_folder_that_cannot_be_written_gets_none(cache: Path, monkeypatch: pytest.MonkeyPatch):
    (cache / "java").write_text("a file in the way")
    monkeypatch.setattr(class_archive, "_start_once", lambda draft: pytest.fail(f"a Java starts for {draft}"))
    assert not class_archive.make(JAVA)


def test_a_start_that_fails_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch):
    def fails(draft: Path) -> None:
        draft.write_bytes(b"half")
        raise subprocess.CalledProcessError(1, "java")

    monkeypatch.setattr(class_archive, "_start_once", fails)
    assert not class_archive.make(JAVA)
    assert list((cache / "java").iterdir()) == []


SESSION = """
import sys
from pathlib import Path
import skypane as sp
spark = sp.session("local[1]", conf={"spark.driver.memory": "512m"})
java = spark.sparkContext._gateway.proc.pid
mapped = sys.argv[1] in Path(f"/proc/{java}/maps").read_text()
print(mapped, spark.range(3).count())
"""


@pytest.mark.night
@pytest.mark.spark
def test_a_session_maps_the_archive_and_starts_with_a_damaged_one(cache: Path, capsys: pytest.CaptureFixture[str]):
    java = find_java()
    if main(["warm", "--java"]):
        pytest.skip(f"{java} writes no archive")
    archive = place(java)
    assert str(archive) in capsys.readouterr().out
    assert [file.name for file in (cache / "java").iterdir() if file.suffix == ".jsa"] == [archive.name]
    assert started(archive) == "True 3"
    whole = archive.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"", b"x" * 10_000):
        archive.write_bytes(damaged)
        assert started(archive).endswith(" 3")


def started(archive: Path) -> str:
    """Return what a session of its own says: whether its Java has mapped the file, and an answer."""
    return lines_of("-c", SESSION, archive)[-1]
