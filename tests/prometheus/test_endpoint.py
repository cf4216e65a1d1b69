"""The endpoint by HTTP: where it listens, and what becomes of it without a port, or without its package."""

from __future__ import annotations

import inspect
import socket
import subprocess
import sys
from contextlib import ExitStack
from urllib.error import URLError
from urllib.parse import urlsplit

import pytest
from tests.prometheus.scraped import families, text_at
from tests.runtime.receiving.logs import until
from tests.servers.ports import free_ports

import skypane as sp
from skypane.cli.main import main
from skypane.monitoring.measures import OF_STREAMS
from skypane.prometheus import bounded_server
from skypane.prometheus.endpoint import DEFAULT, _host_and_port


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", ":0"])
def test_all_measures_are_served_until_it_is_closed(address: str):
    with sp.MetricsServer(address) as server:
        names = {family.name for family in families(text_at(server.url))}
        assert {measure.name.removesuffix("_total") for measure in OF_STREAMS} <= names
    with pytest.raises(URLError):
        text_at(server.url)


def test_connections_that_ask_nothing_are_few_and_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bounded_server, "LONGEST", 0.5)
    with sp.MetricsServer("127.0.0.1:0") as server, ExitStack() as until_end:
        address = "127.0.0.1", urlsplit(server.url).port
        idle = [until_end.enter_context(socket.create_connection(address, 30)) for _ in range(bounded_server.MOST)]
        for one in idle:
            one.sendall(b"GET /met")
        with socket.create_connection(address, 30) as more:
            assert more.recv(1) == b""
        assert {one.recv(1) for one in idle} == {b""}
        until(lambda: server._http._free.acquire(blocking=False), "no connection has ended")
        server._http._free.release()
        assert text_at(server.url)


def test_a_port_that_is_taken_is_reported_and_one_that_is_free_again_is_used():
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    with (
        socket.create_server(("127.0.0.1", port)),
        pytest.raises(
            sp.ConfigError, match=f"served at {address}: Address already in use; choose another port, or end"
        ),
    ):
        sp.serve_metrics(address=address)
    for _ in range(2):
        with sp.serve_metrics(address=address) as server:
            assert text_at(server.url)


def test_a_job_whose_port_is_taken_ends_before_spark_starts(capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["run", "rate-skyline", "--metrics", address]) == 1
    output = capsys.readouterr()
    assert f"skypane: metrics cannot be served at {address}: Address already in use" in output.err
    assert len(output.err.splitlines()) == 1


def test_a_batch_job_has_no_metrics(capsys: pytest.CaptureFixture[str], tmp_path):
    (tmp_path / "job.yaml").write_text(
        f"""
name: offers
mode: batch
source: {{format: json, path: {tmp_path}/in, schema: "price double"}}
query: {{kind: skyline, preference: "price MIN"}}
output: {{format: csv, path: {tmp_path}/out}}
"""
    )
    for option in (["--metrics", "127.0.0.1:0"], ["--opentelemetry"]):
        for dry in ([], ["--dry-run"]):
            assert main(["run", str(tmp_path / "job.yaml"), *option, *dry]) == 1
            assert f"{option[0]} is only for streaming jobs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "parts"),
    [(":9464", ("", 9464)), ("host.name:1", ("host.name", 1)), ("[::1]:65535", ("[::1]", 65535))],
)
def test_an_address_is_a_host_and_a_port(address: str, parts: tuple[str, int]):
    assert _host_and_port(address) == parts


@pytest.mark.parametrize("address", ["", "9464", "host", ":", ":65536", ":-1", "::1:80", "http://host:1", ":1 "])
def test_another_address_is_refused(address: str):
    with pytest.raises(sp.ConfigError, match="must be host:port or :port, such as :9464"):
        sp.serve_metrics(address=address)


@pytest.mark.parametrize("host", ["192.0.2.1", "a" * 64, "a..b"])
def test_a_host_that_is_not_here_is_reported(host: str):
    with pytest.raises(sp.ConfigError, match=rf"cannot be served at {host}:0: .*; choose an address of this machine"):
        sp.serve_metrics(address=f"{host}:0")


def test_by_default_only_this_machine_reaches_it():
    assert _host_and_port(DEFAULT)[0] == "127.0.0.1"
    for serves in (sp.serve_metrics, sp.MetricsServer):
        assert inspect.signature(serves).parameters["address"].default == DEFAULT


WITHOUT = """
import sys
sys.modules["prometheus_client"] = None
import skypane as sp
try:
    sp.serve_metrics(address=":0")
except sp.ConfigError as error:
    print(error)
"""


def test_without_its_package_the_error_has_the_command_that_installs_it():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "not installed: pip install 'skypane[prometheus]'" in done.stdout
