"""Each public name has an example in its docstring, which gives what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.checkout import PYTHONPATH
from tests.docs.example_driver import examples, shared


@pytest.mark.parametrize("name", sorted(examples()))
def test_each_public_name_has_an_example(name: str):
    assert examples()[name].examples, f"sp.{name}"


def test_the_page_shows_how_the_examples_begin():
    assert "offers = spark.createDataFrame(" in shared()


@pytest.mark.spark
def test_the_examples_of_public_names_give_what_they_show(tmp_path: Path):
    """In a process of its own, whose relative paths are those of Spark, too."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.docs.example_driver"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": PYTHONPATH}, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    assert "examples" in ran.stdout
