"""The tutorials of docs, from their own text: each block is run in order, and prints what the page shows below it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

import pytest

from skypane.jobs import parse

DOCS = Path(__file__).parent.parent / "docs"
TUTORIALS = sorted(DOCS.glob("tutorial-*.md"))
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# (\S+)\n")
_WIDTH = "100"
"""Columns of the terminal for which the outputs of commands are shown."""

DRIVER = """
import contextlib, io, json, subprocess, sys

def printed(kind, line, code):
    if kind == "sh":
        done = subprocess.run(["bash", "-euc", code], stdout=subprocess.PIPE, text=True)
        assert done.returncode == 0, f"line {line}: {done.stdout}"
        return done.stdout
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile("\\n" * (line - 1) + code, "the page", "exec"), globals())
    return output.getvalue()

outputs = [printed(*step) for step in json.loads(sys.argv[1])]
with open(sys.argv[2], "w") as file:
    json.dump(outputs, file)
"""
"""Runs the blocks as a reader does who types them into one Python, and writes a list of their outputs: Java, too, writes to stdout."""


class Step(NamedTuple):
    """A block of a page that a reader types, its first line in the page, and the output that the page shows for it."""

    kind: str
    line: int
    code: str
    shown: str


def steps(page: str) -> list[Step]:
    """Return what a page lets its reader type, except for what installs; each `text` block is the output of the block before it."""
    found: list[Step] = []
    for block in _BLOCK.finditer(page):
        kind, body = block.groups()
        line = page.count("\n", 0, block.start()) + 2
        if kind == "text":
            assert found, f"line {line}: an output before the first block that is run"
            assert not found[-1].shown, f"line {line}: a second output of one block"
            found[-1] = found[-1]._replace(shown=body)
        elif kind in {"python", "sh"} and "pip install" not in body:
            found.append(Step(kind, line, body, ""))
    return found


def files(page: str) -> dict[str, str]:
    """Return the files that a page lets its reader save: yaml blocks, which begin with the name of the file as a comment."""
    bodies = [body for kind, body in _BLOCK.findall(page) if kind == "yaml"]
    names = [_FILE.match(body) for body in bodies]
    assert all(names), "a yaml block does not begin with the name of its file"
    return {name[1]: body for name, body in zip(names, bodies, strict=True) if name}


def pattern(shown: str) -> str:
    """Return a regular expression for an output: `...` is any text within a line, or any lines if nothing else is in its line."""
    lines = [
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in bare(shown)
    ]
    return "".join(lines)


def bare(output: str) -> list[str]:
    """Return the lines of an output without the space at their ends, and without empty lines."""
    return [line.rstrip() for line in output.splitlines() if line.strip()]


def difference(step: Step, printed: str) -> str:
    """Return how an output differs from what the page shows; nothing if it does not."""
    lines = bare(printed)
    if re.fullmatch(pattern(step.shown), "".join(f"{line}\n" for line in lines)):
        return ""
    compared = unified_diff(bare(step.shown), lines, "the page", "this run", lineterm="")
    return "\n".join([f"line {step.line}:", *compared])


def activated() -> dict[str, str]:
    """Return the variables of a terminal of a known width in which the environment of this Python is active.

    Java has its own settings, as a reader's: those of tests are for a shorter life (tests/java.py).
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    return {**inherited, "PATH": path, "COLUMNS": _WIDTH}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_each_block_of_a_tutorial_prints_what_the_page_shows(page: Path, tmp_path: Path):
    text = page.read_text(encoding="utf-8")
    for name, body in files(text).items():
        (tmp_path / name).write_text(body, encoding="utf-8")
    typed = steps(text)
    outputs = tmp_path / "outputs.json"
    command = [sys.executable, "-c", DRIVER, json.dumps([step[:3] for step in typed]), str(outputs)]
    done = subprocess.run(command, cwd=tmp_path, env=activated(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    printed = json.loads(outputs.read_text(encoding="utf-8"))
    different = [difference(step, output) for step, output in zip(typed, printed, strict=True)]
    assert not any(different), "\n".join(filter(None, different))


PAGE = """
```sh
pip install skypane
```

```python
print(1.25, "s")
```

```text
... s
```

```yaml
# a.yaml
name: a
```

```sh
true
```
"""


def test_the_steps_of_a_page_are_its_blocks_with_their_outputs():
    assert steps(PAGE) == [
        Step("python", 7, 'print(1.25, "s")\n', "... s\n"),
        Step("sh", 20, "true\n", ""),
    ]
    assert files(PAGE) == {"a.yaml": "# a.yaml\nname: a\n"}


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ("```text\n1\n```\n", "an output before the first block"),
        ("```sh\ntrue\n```\n```text\n1\n```\n```text\n2\n```\n", "a second output of one block"),
    ],
)
def test_an_output_without_a_block_is_refused(page: str, problem: str):
    with pytest.raises(AssertionError, match=problem):
        steps(page)


def test_a_file_without_a_name_is_refused():
    with pytest.raises(AssertionError, match="does not begin with the name"):
        files("```yaml\nname: a\n```\n")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("batch 0 (... s): 3 rows\n", "batch 0 (0.25 s): 3 rows\n", True),
        ("batch 0 (... s): 3 rows\n", "batch 0 (0.25 s): 4 rows\n", False),
        ("a ... d\n", "a b\nc d\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n", "a  \n\n", True),
        ("1.5 s\n", "105 s\n", False),
        ("", "not shown\n", False),
        ("shown\n", "", False),
    ],
)
def test_an_output_is_compared_with_what_the_page_shows(shown: str, printed: str, same: bool):
    assert (difference(Step("python", 1, "", shown), printed) == "") == same


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_each_job_file_of_a_tutorial_is_a_valid_one(page: Path):
    for name, body in files(page.read_text(encoding="utf-8")).items():
        assert parse(body, name).name


def test_both_tutorials_are_run():
    assert [page.name for page in TUTORIALS] == ["tutorial-budget.md", "tutorial-first-stream.md"]
