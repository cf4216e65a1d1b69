from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.scenarios import lines_of

import skypane as sp
from skypane.runtime.spark.machine import interpreter
from skypane.runtime.spark.machine.interpreter import Interpreter, ask, check_workers, try_workers, use_this_interpreter
from skypane.types import ConfigError


def test_workers_run_this_interpreter_by_default():
    environment = {"PYSPARK_DRIVER_PYTHON": "ipython"}
    use_this_interpreter(environment)
    assert environment == {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": "ipython"}


@pytest.fixture
def other(tmp_path: Path) -> str:
    """Another Python environment, in which nothing is installed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    return str(tmp_path / "other" / "bin" / "python")


def test_another_environment_lacks_what_workers_need(other: str):
    found = ask(other)
    assert found.prefix == str(Path(other).parent.parent)
    assert found.fault is not None
    assert found.fault.startswith("has no skypane and no pyspark")


def test_the_interpreter_of_this_environment_has_no_fault():
    assert ask(sys.executable).fault is None
    assert ask(str(Path(sys.executable).with_name("python3"))).fault is None


def test_another_minor_version_of_python_cannot_read_what_this_one_pickles():
    assert Interpreter("3.9.1", "/usr").fault == f"is Python 3.9.1, not {sys.version.split()[0]}"


def test_a_local_session_with_another_python_is_refused_before_anything_runs(
    spark: SparkSession, other: str, monkeypatch: pytest.MonkeyPatch
):
    check_workers(spark)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", other)
    with pytest.raises(ConfigError, match=rf"^Spark's workers run '{other}', which has no skypane .*PYSPARK_PYTHON"):
        check_workers(spark)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python")
    with pytest.raises(ConfigError, match=r"'/nowhere/python', which does not run"):
        check_workers(spark)


def test_a_job_checks_workers_on_other_machines(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(interpreter, "_local_program", lambda _: None)
    session = spark.newSession()
    try_workers(session)
    assert session in interpreter._TRIED
    monkeypatch.setattr(interpreter, "NEEDED", ("skypane", "no_such_package"))
    with pytest.raises(ConfigError, match=r"^Spark's workers run a Python that has no no_such_package: before"):
        try_workers(spark.newSession())


SCRIPT = """
from pyspark.sql import SparkSession
import skypane as sp
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.range(3).selectExpr("id", "timestamp_micros(id) ts")
try:
    print(sp.skyline(rows, "id MAX").count())
except sp.ConfigError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_script_that_is_run_without_its_environment_is_answered(other: str):
    """As `.venv/bin/python job.py` is, where the first python3 on PATH is another one."""
    assert run_script(other) == ["1"]


@pytest.mark.night
def test_a_python_chosen_by_the_user_is_kept_and_its_fault_is_one_sentence(other: str):
    (line,) = run_script(other, PYSPARK_PYTHON=other)
    assert line.startswith(f"Spark's workers run '{other}', which has no skypane")
    assert sys.executable in line


def run_script(other: str, **environment: str) -> list[str]:
    """Return the lines that SCRIPT prints where `other` comes first on PATH."""
    path = f"{Path(other).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    return lines_of("-c", SCRIPT, env=inherited | {"PATH": path} | environment)


def test_a_local_session_without_settings_runs_this_python_if_the_first_on_path_cannot_work(
    spark: SparkSession, other: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("PATH", f"{Path(other).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "python3")
    ask.cache_clear()
    check_workers(spark)
    assert spark.sparkContext.pythonExec == sys.executable
    assert sp.skyline(spark.range(3), "id MAX").toArrow().to_pylist() == [{"id": 2}]
    ask.cache_clear()
