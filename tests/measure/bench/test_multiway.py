"""Merges are compared in one run, and a ratio of T-Gate to the others is that of their rates."""

from __future__ import annotations

from pathlib import Path

import pytest
from measure.bench.multiway import MERGES, QUEUE, WAYS, compiling_java, merge_line, merging
from measure.results.record import Comparison, Times


@pytest.mark.long
def test_all_merges_take_the_same_inputs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")  # without Java
    found = merging(3, 3_001, rounds=1)
    assert found.sides.keys() == WAYS.keys()
    assert {way: found.rows_of(way) for way in WAYS} == {way: 3_001 // part // 3 * 3 for way, (_, part) in WAYS.items()}
    assert found.missing == {QUEUE: "there is no Java with a compiler here"}
    assert merge_line(found)[0] == "3"
    assert len(merge_line(found)) == len(MERGES)


@pytest.mark.long
def test_a_java_whose_program_fails_is_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n[ $1 = --list-modules ] && echo jdk.compiler@21 && exit\necho no memory >&2\nexit 3\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"^PriorityQueueMerge\.java ended with 3: no memory"):
        merging(3, 300, rounds=1)


@pytest.mark.parametrize(
    ("modules", "compiles"),
    [("java.base@21", False), ("java.base@11.0.2 jdk.compiler@11.0.2", False), ("jdk.compiler@21", True)],
)
def test_a_java_without_a_compiler_of_records_is_none(
    modules: str, compiles: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\nprintf '%s\\n' {modules}\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiling_java() == (str(java) if compiles else None)


def test_ratios_are_those_of_the_same_run():
    rates = dict(zip(WAYS, (8, 4, 40, 2), strict=True))
    sides = {way: [Times(1 / rate, 2 / rate)] for way, rate in rates.items()} | {QUEUE: [Times(1 / 16)]}
    found = Comparison("merge of inputs", "20 inputs", 1_000_000, "columnar merge", sides)
    line = dict(zip(MERGES, merge_line(found), strict=True))
    assert line["inputs"] == "20"
    assert line["T-Gate, compiled, M/s wall / CPU"] == "8.00 / 4.00"
    assert line["PriorityQueue, M/s"] == "16.00"
    assert [line[name] for name in MERGES[-4:]] == ["4.0", "0.5", "20.0", "2.5"]
    assert MERGES[-4:] == ["T-Gate / heapq", "T-Gate / PriorityQueue", "columnar / heapq", "columnar / PriorityQueue"]
