"""Addresses of Spark Connect servers: what they name, and an error at once where nobody answers."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers.ports import free_ports

import skypane as sp
from skypane.jobs import building, reading
from skypane.runtime.spark.machine.server_address import check_client, check_reachable, host_and_port

JOB = """
name: a job
mode: batch
source: {format: parquet, path: in}
query: {kind: skyline, preference: price MIN}
output: {format: console}
"""


@pytest.mark.parametrize("address", ["", "spark.example:15002", "http://spark.example", "sc://", "sc://host:port"])
def test_a_wrong_address_is_refused_with_an_example(address: str):
    with pytest.raises(sp.ConfigError, match="sc://localhost:15002"):
        host_and_port(address)


def test_a_server_that_answers_is_reachable_and_one_that_does_not_is_an_error_without_the_token(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        check_reachable(f"sc://127.0.0.1:{port}/;token=unheard-of")
    (port,) = free_ports(1)
    with pytest.raises(sp.ConfigError, match=f"no Spark Connect server answers at 127.0.0.1:{port}") as raised:
        check_reachable(f"sc://127.0.0.1:{port}/;token=unheard-of")
    assert "unheard-of" not in str(raised.value)
    monkeypatch.setenv("grpc_proxy", "http://127.0.0.1:1")
    check_reachable(f"sc://127.0.0.1:{port}")  # only the proxy may reach it


def test_a_client_without_grpc_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "grpc", None)  # an import of it fails
    with pytest.raises(sp.ConfigError, match=r"pip install 'skypane\[connect\]'"):
        check_client()


@pytest.mark.parametrize(("spark", "error"), [
    ("{remote: 'sc://host', master: 'local[2]'}", "spark.master: is of a session that runs Spark here"),
    ("{remote: 'host:15002'}", 'spark.remote: must be the address of a Spark Connect server, such as "sc://host:15002"'),
    ("{remote: {token: secret}}", "spark.remote: "),
])  # fmt: skip
def test_a_job_file_names_a_server_or_a_master(spark: str, error: str):
    with pytest.raises(sp.ConfigError, match="job: ") as raised:
        reading.parse(f"{JOB}spark: {spark}")
    assert error in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_job_is_moved_to_another_server(monkeypatch: pytest.MonkeyPatch):
    job = reading.parse(f"{JOB}spark: {{master: 'local[2]', conf: {{spark.sql.ansi.enabled: true}}}}")
    moved = job.at("sc://host:15002")
    assert (moved.spark.remote, moved.spark.conf) == ("sc://host:15002", job.spark.conf)
    assert moved.summary() == job.summary()
    monkeypatch.delenv("NOWHERE", raising=False)
    with pytest.raises(sp.ConfigError, match=r"spark\.remote is in the environment variable NOWHERE"):
        building.session(job.at("$NOWHERE"))


def test_a_process_that_runs_spark_cannot_be_a_client_and_an_address_without_server_ends_a_job_at_once(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    del spark  # runs in this process
    with pytest.raises(sp.ConfigError, match="this process runs Spark itself"):
        sp.session(remote="sc://localhost:15002")
    (tmp_path / "job.yaml").write_text(JOB)
    (port,) = free_ports(1)
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    command = [sys.executable, "-m", "skypane", "run", "job.yaml", "--remote", f"sc://127.0.0.1:{port}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"no Spark Connect server answers at 127.0.0.1:{port}" in done.stderr
