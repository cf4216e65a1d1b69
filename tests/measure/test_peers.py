"""Programs of others are found, built and run, and what is missing is named with its remedy."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measure.bench.__main__ import versions
from measure.peers import papers_cpp, windflow
from measure.peers.__main__ import main
from measure.peers.commands import Command, timed
from measure.peers.places import VARIABLE, MissingError, folder, wanted
from measure.results import machine

# What the program of paper 1 does with its arguments, its port and its input, except for answering: that is its authors' code.
LISTENER = """#!{python}
import os, socket, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert (options["-w"], options["-s"], options["-n"], options["-m"]) == ("1000", "200", "1", "1"), options
assert os.path.isdir("log")
setpoint = float(input())
with socket.create_server(("127.0.0.1", int(options["-p"]))) as server:
    connection, _ = server.accept()
    if {deaf}:
        sys.exit("no memory")
    received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
open("received", "wb").write(received)
print(f"Dropped: 2/{{len(received) // 8 // 6 - {lost}}} tuples")
sys.exit({code})
"""


def put(peers: Path, lost: int = 0, code: int = 0, *, deaf: bool = False) -> None:
    program = peers / "bt-ppq" / "pf_skyline-4"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(LISTENER.format(python=sys.executable, lost=lost, code=code, deaf=deaf))
    program.chmod(0o755)


def put_headers(peers: Path, text: str) -> None:
    for file in ("windflow/wf/windflow.hpp", "fastflow/ff/ff.hpp"):
        (peers / file).parent.mkdir(parents=True)
        (peers / file).write_text(text)


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "peers"))
    return tmp_path / "peers"


def test_the_folder_is_in_the_checkout_or_that_of_the_variable(peers: Path, monkeypatch: pytest.MonkeyPatch):
    assert folder() == peers
    monkeypatch.delenv(VARIABLE)
    assert folder().parts[-2:] == ("build", "peers")


def test_what_is_missing_is_named_with_its_place(peers: Path):
    said: list[str] = []
    assert main(said.append) == 1
    headers = "$SKYPANE_PEERS/windflow/wf/windflow.hpp"
    assert said[0] in {
        f"WindFlow, keyed windows: not here, there is no {headers}: put the folder wf of WindFlow 4 there, or set SKYPANE_PEERS to a folder that has it",
        "WindFlow, keyed windows: not here, there is no C++ compiler: install g++, or set CXX",
    }
    assert any("$SKYPANE_PEERS/bt-ppq/pf_skyline-8" in line for line in said)
    assert not any(str(peers) in line for line in said)  # the pages quote it
    assert papers_cpp.built([4, 8]) == []


def test_the_second_headers_are_looked_for_where_the_first_are(peers: Path):
    (peers / "windflow" / "wf").mkdir(parents=True)
    (peers / "windflow" / "wf" / "windflow.hpp").write_text("")
    with pytest.raises(MissingError, match="put the folder ff of FastFlow 3 there"):
        windflow.headers()


def test_the_headers_of_a_run_are_named_by_the_contents_of_both_libraries(peers: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "versions", dict)  # those of packages; Java's would start it
    assert "windflow" not in versions()
    put_headers(peers, "// one\n")
    before = versions()["windflow"]
    assert before == windflow.digest()
    assert re.fullmatch("headers [0-9a-f]{8}", before)
    (peers / "fastflow" / "ff" / "ff.hpp").write_text("// another\n")
    assert windflow.digest() != before


def test_the_folder_by_default_is_named_without_that_of_the_checkout(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MissingError, match=r"^there is no build/peers/nothing: build it, or set SKYPANE_PEERS "):
        wanted(folder() / "nothing", "build it")


def test_without_a_compiler_nothing_is_built(peers: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(peers))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(MissingError, match=r"^there is no C\+\+ compiler: install g\+\+, or set CXX$"):
        windflow.program("keyed_windows")


@pytest.mark.long
def test_headers_of_another_version_are_reported_with_the_error_of_the_compiler(peers: Path):
    put_headers(peers, "#error another version\n")
    with pytest.raises(
        MissingError, match=r"there is no C\+\+ compiler|keyed_windows does not compile .*#error another version"
    ):
        windflow.program("keyed_windows")
    assert list((peers / "bin").glob("*")) == []


def test_a_program_gets_all_rows_over_its_port(peers: Path, tmp_path: Path):
    put(peers)
    assert papers_cpp.built([4, 8]) == [4]
    rows = np.random.default_rng(1).random((50_000, 6))
    found = papers_cpp.run(rows, 4, 1_000, 200, tmp_path / "scratch")
    assert (tmp_path / "scratch" / "received").read_bytes() == rows.tobytes()
    assert found.dropped == 2
    assert 0 < found.times.wall < 60
    assert found.times.cpu is not None
    assert found.times.cpu > 0


@pytest.mark.parametrize(
    ("faults", "rows", "slide", "problem"),
    [
        ({"lost": 1}, 50, 200, "has not received 50 rows"),
        ({"code": 3}, 50, 200, "pf_skyline-4 ended with 3: Dropped: 2/50"),
        ({"deaf": True}, 500_000, 200, r"pf_skyline-4 reads no more \("),
        ({}, 50, 100, r"pf_skyline-4 does not listen: (?s:.)*AssertionError"),
    ],
    ids=["loses rows", "ends with an error", "stops reading", "does not listen"],
)
def test_a_program_that_fails_is_named(
    faults: dict[str, Any], rows: int, slide: int, problem: str, peers: Path, tmp_path: Path
):
    put(peers, **faults)
    with pytest.raises(RuntimeError, match=problem):
        papers_cpp.run(np.ones((rows, 6)), 4, 1_000, slide, tmp_path / "scratch")


def test_the_cpu_time_of_a_process_is_measured_to_its_end(tmp_path: Path):
    times = timed([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], tmp_path)
    assert times.cpu is not None
    assert 0.3 <= times.cpu <= times.wall + 1


def test_output_is_read_while_the_process_writes_more(tmp_path: Path):
    code = "print('one', flush=True); input(); print('two', flush=True); import sys; sys.stdin.read()"
    with Command([sys.executable, "-c", code], tmp_path, b"go\n") as command:
        while "one" not in command.output() and command.runs:
            pass
        command.ended()
        assert command.output() == "one\ntwo\n"


def test_a_process_does_not_outlive_what_it_was_started_for(tmp_path: Path):
    with Command([sys.executable, "-c", "while True: pass"], tmp_path) as command:
        assert command.runs
    assert not command.runs
