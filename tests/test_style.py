"""Editors, hooks and the tools of `make lint` require one style, and every file follows it."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest
import yaml
from tests.checkout import ROOT

pytestmark = pytest.mark.pages

FOLDERS = ("src", "papers", "tests", "measure", "docs", "locks", ".ci", ".github")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOLS = PROJECT["tool"]
EDITOR = configparser.ConfigParser()
EDITOR.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
(HOOKS,) = (each["hooks"] for each in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"])


def written() -> list[Path]:
    """Return the files that people write: those at the root and in its folders, except for what is cached, drawn or no text."""
    top = ("*.md", "*.toml", "Makefile", "LICENSE", ".editorconfig", ".gitignore", ".pre-commit-config.yaml")
    found = chain(*(ROOT.glob(name) for name in top), *((ROOT / folder).rglob("*") for folder in FOLDERS))
    files = (path for path in found if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".svg")
    return sorted(path for path in files if b"\0" not in path.read_bytes())


def faults(path: Path) -> list[str]:
    """Return what of the editor's settings a file lacks."""
    settings = EDITOR["*"]
    text = path.read_bytes().decode(settings["charset"])
    tabs = EDITOR["Makefile" if path.name == "Makefile" else "*"]["indent_style"] == "tab"
    checks = {
        "ends of lines": "\r" not in text,
        "last line": not text or (text.endswith("\n") and not text.endswith("\n\n")),
        "spaces at ends of lines": not re.search(r"[ \t]$", text, re.MULTILINE),
        "tabs": tabs or not re.search(r"^ *\t", text, re.MULTILINE),
    }
    return [f"{path.relative_to(ROOT)}: {name}" for name, holds in checks.items() if not holds]


def test_every_file_follows_the_settings_of_editors():
    files = written()
    assert {ROOT / "pyproject.toml", ROOT / "Makefile", Path(__file__)} <= set(files)
    assert list(chain.from_iterable(map(faults, files))) == []


@pytest.mark.parametrize("text", [b"a\r\n", b"a", b"a \n", b"\ta\n", b"a\n\n"])
def test_a_fault_is_seen(text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "page.md").write_bytes(text)
    assert len(faults(tmp_path / "page.md")) == 1


def test_editors_and_linters_agree():
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert int(EDITOR["*.py"]["max_line_length"]) == TOOLS["ruff"]["line-length"]
    assert TOOLS["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    # The types of a library are written for the Python that it was installed for.
    assert "python_version" not in TOOLS["mypy"]


@pytest.mark.parametrize(
    "hook", [hook for hook in HOOKS if hook.get("pass_filenames", True)], ids=lambda hook: hook["id"]
)
def test_a_hook_runs_with_the_tools_that_are_locked(hook: dict[str, str], tmp_path: Path):
    """Its options are some that this version has, a good file passes, and a bad one does not stay as it was."""
    program, *options = hook["entry"].split()
    here = Path(sys.executable).with_name(Path(program).name)
    bad = tmp_path / "bad.py"
    bad.write_text("import os\nx   =  1\n")
    command = [str(here), *options, "--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    good = subprocess.run([*command, __file__], capture_output=True, text=True, check=False)
    assert good.returncode == 0, good.stdout + good.stderr
    done = subprocess.run([*command, str(bad)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 or bad.read_text() != "import os\nx   =  1\n"
