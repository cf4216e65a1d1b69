from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace

import pytest

import skypane
from skypane.cli import main as module
from skypane.cli.main import COMMANDS, main
from skypane.types import ConfigError


def exit_code(*argv: str) -> object:
    with pytest.raises(SystemExit) as exit_:
        main(argv)
    return exit_.value.code


def test_help_lists_each_command(capsys: pytest.CaptureFixture[str]):
    assert exit_code("--help") == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        name = getattr(command, "__name__", "").rpartition(".")[2]
        assert f"\n    {name}" in shown


@pytest.mark.parametrize("argv", [[], ["no-such-verb"], ["doctor", "--no-such-option"]])
def test_a_command_line_that_cannot_be_read_exits_with_2(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert exit_code(*argv) == 2
    assert "usage: skypane" in capsys.readouterr().err


class Raises:
    """A command that ends in an exception."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def add_parser(self, subparsers, /):
        return subparsers.add_parser("raises")

    def run(self, _arguments: Namespace, /) -> int:
        raise self.error


def test_an_error_of_ours_is_one_line_without_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(module, "COMMANDS", (Raises(ConfigError("need 0 < slide, got slide=-1")),))
    assert main(["raises"]) == 1
    assert capsys.readouterr().err == "skypane: need 0 < slide, got slide=-1\n"


def test_a_command_without_its_package_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(module, "plugins", lambda _group: [])
    assert main(["reproduce", "paper1-figure-8", "--quick"]) == 1
    assert capsys.readouterr().err.endswith("which is not installed: pip install skypane-papers\n")


@pytest.mark.parametrize("bug", [ZeroDivisionError, BrokenPipeError], ids=["any", "a pipe that is not the output"])
def test_a_bug_keeps_its_trace(bug: type[Exception], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "COMMANDS", (Raises(bug()),))
    with pytest.raises(bug):
        main(["raises"])


def test_an_interrupt_exits_as_shells_expect(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "COMMANDS", (Raises(KeyboardInterrupt()),))
    assert main(["raises"]) == 130


PRINTS = """
import sys
from skypane.cli import main as module
class Prints:
    def add_parser(self, commands):
        return commands.add_parser("prints")
    def run(self, arguments):
        for number in range(lines):
            exec(call)
        return 0
module.COMMANDS = (Prints(),)
"""
ONCE = f"""{PRINTS}
lines, call = 1, "print(number)"
raise SystemExit(module.main(["prints"]))
"""
INTO_BROKEN_PIPES = f"""{PRINTS}
import json, os
cases, broken, codes = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for lines, call, argv in cases:
    if not (child := os.fork()):
        os.dup2(broken, 2 if "sys.stderr" in call else 1)
        raise SystemExit(module.main(argv))
    os.write(codes, b"%d " % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""Each case in a process of its own."""
BROKEN = {
    "lines that do not fit the buffer": (100_000, "print(number)", ["prints"]),
    "a line that fits it, and is written at the end": (1, "print(number)", ["prints"]),
    "errors": (1, "print(number, file=sys.stderr)", ["prints"]),
    "the console of commands": (
        1, "from skypane.cli.command_console import CommandConsole; CommandConsole().print(number)", ["prints"],
    ),
    "help": (0, "", ["--help"]),
}  # fmt: skip


def test_a_pipe_that_nobody_reads_ends_a_command_without_a_trace():
    end_read, end_written = os.pipe()
    os.close(end_read)
    codes_read, codes = os.pipe()
    command = [sys.executable, "-c", INTO_BROKEN_PIPES, json.dumps([*BROKEN.values()]), str(end_written), str(codes)]
    done = subprocess.run(command, capture_output=True, pass_fds=[end_written, codes], check=False)
    for file in (end_written, codes):
        os.close(file)
    with os.fdopen(codes_read) as told:
        ended = dict(zip(BROKEN, map(int, told.read().split()), strict=True))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert ended.pop("help") in {0, 141}  # argparse ignores errors of an output without a buffer
    assert ended == dict.fromkeys(ended, 141)


def test_a_command_runs_without_an_output():
    """As a daemon that was started with its output closed."""
    command = ["/bin/sh", "-c", '"$@" >&-', "sh", sys.executable, "-c", ONCE]
    done = subprocess.run(command, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.long
@pytest.mark.parametrize("package", ["skypane", "skypane.cli"])
def test_python_dash_m_is_the_command(package: str):
    done = subprocess.run([sys.executable, "-m", package, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: skypane")


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]):
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"skypane {skypane.__version__}\n"


WITHOUT_CLI = """
import sys
from importlib.abc import MetaPathFinder
class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"matplotlib", "pydantic", "pydantic_core", "rich", "yaml"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import skypane
from skypane.cli.main import main
print(main(["run", "--examples"]), main(["demo", "--out", "nowhere"]))
"""


def test_without_the_extra_commands_name_it_and_the_package_imports():
    """What executors import needs none of it, and what does says what to install."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_CLI], capture_output=True, text=True, check=True)
    assert done.stdout == "1 1\n"
    assert set(done.stderr.splitlines()) == {
        "skypane: this command needs rich, which is not installed: pip install 'skypane[cli]'"
    }
