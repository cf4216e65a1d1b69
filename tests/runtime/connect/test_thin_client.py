"""A client whose environment has the package pyspark-client instead of pyspark, and so neither Java nor Py4J.

The newest pyspark-client may be older than the PySpark here. Then the server is of its version, too.
"""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import requires
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import pytest
from packaging.requirements import Requirement
from tests.checkout import PATHS, PYTHONPATH, ROOT
from tests.runtime.connect.test_connect import answer_of, client_environment
from tests.runtime.connect_driver import BATCHES, SKYLINE, plan
from tests.runtime.connect_server import SPARK, connect_server
from tests.runtime.scenarios import PATIENCE
from tests.runtime.streams import expected, parquet_rows, windows_of
from tests.servers.kafka import NoArtefactsError, classpath

from skypane.runtime import local

pytest.importorskip("grpc", reason="needs pip install 'skypane[connect]'")

pytestmark = pytest.mark.spark

CLIENT: Final = "pyspark-client"
OF_TESTS: Final = ("pytest", "hypothesis")
"""What the modules of the scenarios import beside skypane's own needs."""
DELTA: Final = {"4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"}
"""The jar of Delta for a version of Spark; none works with Spark 4.3."""
OF_DELTA: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",  # 50 are for tables of many files
}


@dataclass(frozen=True)
class Pair:
    """The Python of a client, and a PySpark of the same minor version for a server."""

    python: str
    minor: str
    spark: Path

    def run(self, scenario: str, folder: Path, conf: Mapping[str, str]) -> dict[str, Any]:
        """Run a scenario of connect_thin.py against a server with these settings."""
        paths = PATHS if self.spark == SPARK else (self.spark.parent, *PATHS)
        with connect_server(folder / "server", spark=self.spark, paths=paths, conf=conf) as address:
            command = [self.python, "-m", "tests.runtime.connect_thin", address, scenario, str(folder)]
            environment = client_environment() | {"PYTHONPATH": PYTHONPATH, "JAVA_HOME": "/nowhere"}
            done = subprocess.run(
                command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE
            )
        assert done.returncode == 0, done.stderr[-3000:]
        return answer_of(done.stdout.splitlines())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("thin")
    python = client(folder / "client")
    program = f"from importlib.metadata import version; print(version('{CLIENT}'))"
    version = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    minor = ".".join(version.split(".")[:2])
    return Pair(python, minor, server_of(minor, python, folder / "spark"))


@pytest.mark.slow
def test_a_client_with_pyspark_client_alone_runs_a_stream_and_a_static_query(pair: Pair, tmp_path: Path):
    answer = pair.run("answered", tmp_path, {})
    rows = pa.concat_tables(BATCHES).combine_chunks()
    assert answer["best"] == sorted(SKYLINE.lower(SKYLINE.lift(rows))["id"].to_pylist())
    assert (answer["batches"], answer["drained"], answer["py4j"]) == ([[0, 1, 2], [3, 4, 5]], 6, False)
    assert windows_of(parquet_rows(tmp_path / "out")) == expected(plan(SKYLINE), [*BATCHES, local.Drain()])


@pytest.mark.slow
def test_a_delta_table_has_each_window_once_after_a_kill_between_two_commits(pair: Pair, tmp_path: Path):
    """Written by a function, and by sp.Table."""
    if pair.minor not in DELTA:
        pytest.skip(f"no jar of Delta is known to work with Spark {pair.minor}")
    try:
        jars = classpath(DELTA[pair.minor])
    except NoArtefactsError as error:
        pytest.skip(str(error))
    places = {"spark.jars": jars.replace(os.pathsep, ","), "spark.sql.warehouse.dir": str(tmp_path / "tables")}
    for name, answer in pair.run("tables", tmp_path, {**places, **OF_DELTA}).items():
        assert answer["error"].startswith("SkypaneError: the query has failed in Spark's part"), name
        assert answer["batches"] == [2, 3, 4, 5], name
        assert windows_of(parquet_rows(tmp_path / name / "out")) == expected(plan(SKYLINE), BATCHES), name


def client(folder: Path) -> str:
    """Make an environment with pyspark-client, in the minor version of PySpark here if there is one, and all that skypane needs."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    needed = [one for one in requires("skypane") or [] if Requirement(one).marker is None]
    others = [*(one for one in needed if Requirement(one).name != "pyspark"), *OF_TESTS]
    minor = ".".join(pyspark.__version__.split(".")[:2])
    if not install(python, f"{CLIENT}~={minor}.0", *others) and not install(python, CLIENT, *others):
        pytest.skip(f"{CLIENT} cannot be installed: there is no package index, or it lacks the package")
    return python


def install(python: str, *packages: str, options: Sequence[str] = ()) -> bool:
    """Install packages; return whether that succeeded."""
    quick = ("--quiet", "--no-compile", "--disable-pip-version-check")
    command = [python, "-m", "pip", "install", *quick, *options, *packages]
    return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).returncode == 0


def server_of(minor: str, python: str, folder: Path) -> Path:
    """Return the folder of PySpark in the client's minor version: the one here, or one that is installed into `folder`."""
    if pyspark.__version__.startswith(f"{minor}."):
        return SPARK
    if not install(python, f"pyspark~={minor}.0", options=["--no-deps", "--target", str(folder)]):
        pytest.skip(f"there is no {CLIENT} of version {pyspark.__version__}, and PySpark {minor} cannot be installed")
    return folder / "pyspark"
