"""What the package says of itself: its examples, its names, and what goes into a distribution."""

from __future__ import annotations

import doctest
import inspect
import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.checkout import ROOT

import skypane as sp
from skypane import kernels

SOURCES = Path(sp.__file__).parent
EXAMPLES = sorted(
    ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCES.rglob("*.py")
    if ">>> " in path.read_text()
)
ENTRY_POINTS = (sp.skyline, sp.top_k, sp.k_dominant, sp.top_delta, sp.aggregate, sp.ask, sp.stream)


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples_in_docstrings_give_what_they_show(module: str):
    """Those of public names are run with Spark, by tests/docs/test_examples.py."""
    public = {inspect.getdoc(getattr(sp, name)) for name in dir(sp)}
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    found = [test for test in doctest.DocTestFinder().find(import_module(module)) if test.examples]
    assert found
    for test in found:
        if inspect.cleandoc(test.docstring or "") not in public:
            runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_the_package_shows_its_public_names_and_nothing_else():
    public: list[str] = vars(sp)["__all__"]
    assert dir(sp) == sorted(public)
    assert {"AqKSlack", "Fuzzy", "Memory", "Skyline", "__version__", "max", "stream"} <= set(public)
    assert not set(public) & {"control", "operators", "annotations", "registry", "Any", "TYPE_CHECKING"}


@pytest.mark.long
@pytest.mark.parametrize("module", ["replay", "many.source"])
def test_a_process_that_reads_a_source_loads_neither_the_names_of_the_package_nor_numba(module: str):
    program = f"import sys, skypane.runtime.spark.sources.{module}; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"numba", "skypane.public", "skypane.kernels.public"} & set(answer.stdout.split())


def test_the_public_names_load_where_pyspark_has_no_java():
    """As with pyspark-client alone, which PySpark takes itself for by this variable of its own tests."""
    program = "import skypane as sp; [getattr(sp, name) for name in dir(sp)]; import pyspark; print(hasattr(pyspark, 'SparkContext'))"
    environment = os.environ | {"SPARK_SKIP_CONNECT_COMPAT_TESTS": "1"}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (run.stdout, run.stderr) == ("False\n", "")


def test_a_name_that_is_not_there_is_an_attribute_error():
    for package in (sp, kernels):
        with pytest.raises(AttributeError, match=rf"module '{package.__name__}' has no attribute 'skylines'"):
            package.skylines  # noqa: B018


@pytest.mark.parametrize("entry_point", ENTRY_POINTS, ids=lambda entry_point: entry_point.__name__)
def test_entry_points_use_the_same_names_for_the_same_arguments(entry_point: Any):
    """Same name, same meaning: annotation and default too, except the rows, and what a stream has of its own.

    Its answers go to any sink, its checkpoint says whether files are its own, and invalid rows are quarantined.
    """
    parameters = inspect.signature(entry_point).parameters
    of_a_batch = {"query", "rows", *({"output", "if_exists", "invalid"} if entry_point is sp.stream else ())}
    for name, parameter in inspect.signature(sp.ask).parameters.items():
        if name not in parameters or name in of_a_batch:
            continue
        assert (parameters[name].annotation, parameters[name].default) == (parameter.annotation, parameter.default)
    assert set(inspect.signature(sp.ask).parameters) - of_a_batch <= set(parameters)
    assert all(
        p.kind is p.KEYWORD_ONLY for name, p in parameters.items() if name in {"by", "time", "window", "invalid"}
    )


@pytest.mark.parametrize(
    "entry_point",
    [sp.ask, sp.stream, sp.continuous_skyline, sp.skyline_history],
    ids=lambda entry_point: entry_point.__name__,
)
def test_the_help_of_an_entry_point_has_every_option(entry_point: Any):
    doc = inspect.getdoc(entry_point) or ""
    for name in list(inspect.signature(entry_point).parameters)[2:]:
        assert f"\n{name} " in doc, name


def test_a_source_distribution_lists_what_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert [name for name in listed if not (ROOT / name.lstrip("/")).exists()] == []
