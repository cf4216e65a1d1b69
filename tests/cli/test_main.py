from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace

import pytest

import skypane
from skypane.cli import main as module
from skypane.cli.main import COMMANDS, main
from skypane.types import ConfigError


def test_help_lists_each_command(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    for command in COMMANDS:
        name = getattr(command, "__name__", "").rpartition(".")[2]
        assert f"\n    {name}" in shown


@pytest.mark.parametrize("argv", [[], ["no-such-verb"], ["doctor", "--no-such-option"]])
def test_a_command_line_that_cannot_be_read_exits_with_2(argv: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_:
        main(argv)
    assert exit_.value.code == 2
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


def test_a_bug_keeps_its_trace(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "COMMANDS", (Raises(ZeroDivisionError()),))
    with pytest.raises(ZeroDivisionError):
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
        for number in range({lines}):
            {call}
        return 0
module.COMMANDS = (Prints(),)
raise SystemExit(module.main({argv}))
"""


STDOUT, STDERR = "print(number)", "print(number, file=sys.stderr)"
CONSOLE = "from skypane.cli.command_console import CommandConsole; CommandConsole().print(number)"


@pytest.mark.parametrize(
    ("lines", "call", "argv"),
    [
        (100_000, STDOUT, ["prints"]),
        (1, STDOUT, ["prints"]),  # it fits the buffer, which is written at the end
        (1, STDERR, ["prints"]),
        (1, CONSOLE, ["prints"]),
        (0, STDOUT, ["--help"]),
    ],
)
def test_a_pipe_that_nobody_reads_ends_a_command_without_a_trace(lines: int, call: str, argv: list[str]):
    end_read, end_written = os.pipe()
    os.close(end_read)
    program = PRINTS.format(lines=lines, call=call, argv=argv)
    output, errors = (subprocess.PIPE, end_written) if call == STDERR else (end_written, subprocess.PIPE)
    done = subprocess.run([sys.executable, "-c", program], stdout=output, stderr=errors, check=False)
    os.close(end_written)
    assert (done.stdout or b"", done.stderr or b"") == (b"", b"")
    assert done.returncode == 141 or argv == ["--help"]  # argparse ignores errors of an output without a buffer


def test_a_command_runs_without_an_output():
    """As a daemon that was started with its output closed."""
    command = [sys.executable, "-c", PRINTS.format(lines=1, call=STDOUT, argv=["prints"])]
    done = subprocess.run(["/bin/sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_another_pipe_that_breaks_is_a_bug(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "COMMANDS", (Raises(BrokenPipeError()),))
    with pytest.raises(BrokenPipeError):
        main(["raises"])


@pytest.mark.long
@pytest.mark.parametrize("package", ["skypane", "skypane.cli"])
def test_python_dash_m_is_the_command(package: str):
    done = subprocess.run([sys.executable, "-m", package, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: skypane")


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
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
