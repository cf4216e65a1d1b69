"""A server of Spark Connect on this machine, as a process of its own, from the jar that PySpark ships."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from threading import Thread
from types import MappingProxyType
from typing import IO, Any, Final

import pyspark
from tests.checkout import PATHS
from tests.java import options as java_options
from tests.servers.ports import free_ports

from skypane.runtime.spark.machine.java import ensure_java

SPARK: Final = Path(pyspark.__file__).parent

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_STARTED = "Spark Connect server started"


@dataclass(frozen=True)
class ConnectServer:
    """A server that runs."""

    address: str
    process: Popen[bytes]


@contextmanager
def connect_server(folder: Path, **options: Any) -> Iterator[str]:
    """Run a server; yield its address. See running()."""
    with running(folder, **options) as server:
        yield server.address


@contextmanager
def running(
    folder: Path,
    *,
    python: str = sys.executable,
    spark: Path = SPARK,
    paths: Sequence[Path] = PATHS,
    conf: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[ConnectServer]:
    """Run a server with one core and 512 MB. Its log is in `folder`.

    python  the Python that its workers run
    spark   folder of the package pyspark from which it is started
    paths   folders from which its Python imports packages beside those that are installed
    conf    further settings of Spark
    """
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": folder / "warehouse",
        **({"spark.python.daemon.module": "tests.worker_daemon"} if (spark, paths) == (SPARK, PATHS) else {}),
        **conf,
    }
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submit = [str(spark / "bin" / "spark-class"), "org.apache.spark.deploy.SparkSubmit", "--master", "local[1]"]
    java = ["--driver-memory", "512m", "--driver-java-options", java_options(folder)]
    command = [*submit, *java, *options, "--class", _SERVER]
    with Popen(
        [*command, "spark-internal"], cwd=folder, env=_environment(python, spark, paths), stdout=PIPE, stderr=STDOUT
    ) as server:
        try:
            _wait_for_start(server, folder / "server.log")
            yield ConnectServer(f"sc://127.0.0.1:{port}", server)
        finally:
            server.terminate()


def _environment(python: str, spark: Path, paths: Sequence[Path]) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    ensure_java(environment)
    return environment | {
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": python,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }


def _wait_for_start(server: Popen[bytes], path: Path) -> None:
    """Return when the server has started; its output goes on into the file `path`."""
    assert server.stdout is not None
    log = path.open("wb")
    for line in server.stdout:
        log.write(line)
        if _STARTED in line.decode(errors="replace"):
            log.flush()
            Thread(target=_keep, args=(server.stdout, log), daemon=True).start()
            return
    log.close()
    raise AssertionError(path.read_text())


def _keep(output: IO[bytes], log: IO[bytes]) -> None:
    with log, suppress(ValueError):  # closed when the server is ended
        for line in output:
            log.write(line)
            log.flush()
