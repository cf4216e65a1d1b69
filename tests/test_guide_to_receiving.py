"""The guide to `skypane receive`, from its own text: a real broker and a real server, both with TLS, a password and a token."""

from __future__ import annotations

import base64
import hashlib
import json
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from tests.page_steps import differences, files, steps
from tests.runtime.receiving.authority import authority, signed
from tests.runtime.receiving.broker import mosquitto
from tests.runtime.receiving.logs import lines, until
from tests.runtime.receiving.test_http import Server
from tests.runtime.receiving.test_tls import Encrypted
from tests.servers.ports import free_ports
from tests.test_guides import guide

from skypane.cli.main import main
from skypane.runtime.receiving.receiver import Receiver

pytestmark = pytest.mark.pages

USER, PASSWORD, TOKEN = "gateway", "swordfish", "Bearer 0123abc"
BROKER, SERVER = "broker.example:8883", "grid.example:8443"
MESSAGES = [
    {"at": f"2026-01-01T08:0{minute}:00Z", "meter": meter, "watts": watts}
    for minute, meter, watts in ((1, "m1", 100), (2, "m2", 50), (4, "m1", 300))
]
ANSWER = [{"at": "2026-01-01T08:03:00Z", "meter": "station", "watts": 900}]


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METERS_PASSWORD", PASSWORD)
    monkeypatch.setenv("STATION_TOKEN", TOKEN)


@pytest.mark.usefixtures("secrets")
def test_the_list_of_inputs_is_valid_and_shown_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    authority(tmp_path)
    page = guide("how-to-receive")
    Path("inputs.yaml").write_text(files(page)["inputs.yaml"], encoding="utf-8")
    assert main(["receive", "inputs.yaml", "--dry-run"]) == 0
    printed, shown = capsys.readouterr().out.splitlines(), steps(page)[0].shown.splitlines()
    assert printed[1:] == shown[1:], "the first line has the folder"
    assert not any(secret in line for line in printed for secret in (PASSWORD, TOKEN))


@pytest.mark.usefixtures("secrets")
def test_what_a_broker_and_a_server_have_sent_is_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    port, plain = free_ports(2)
    ca = authority(tmp_path)
    certificate, key = signed(ca, "ours")
    encrypted = (
        "allow_anonymous false", f"password_file {password_file(tmp_path)}", f"listener {port} 127.0.0.1",
        f"certfile {certificate}", f"keyfile {key}",
    )  # fmt: skip
    with mosquitto(tmp_path / "broker", plain, *encrypted), https(certificate, key) as server:
        here = {BROKER: f"127.0.0.1:{port}", SERVER: f"127.0.0.1:{server.server_address[1]}"}
        page = replaced(guide("how-to-receive"), here)
        inputs = files(page)["inputs.yaml"]
        with Receiver(yaml.safe_load(inputs)) as first:
            until(lambda: first.seen[0].state == "receiving", "it does not subscribe")
        publish(plain)  # while no receiver runs: the broker keeps them
        with receiver(inputs, tmp_path):
            until(lambda: len(lines(tmp_path / "received" / "meters")) == len(MESSAGES), "messages are missing")
            until(lambda: len(lines(tmp_path / "received" / "station")) == len(ANSWER), "the answer is missing")
        assert {request["authorization"] for request in server.requests} == {TOKEN}
        assert not differences(page, tmp_path)


def replaced(page: str, hosts: dict[str, str]) -> str:
    for name, here in hosts.items():
        assert name in page
        page = page.replace(name, here)
    return page


def password_file(folder: Path) -> Path:
    """Write the file of the broker's only user, as mosquitto_passwd does."""
    salt, rounds = b"twelve bytes", 101
    key = hashlib.pbkdf2_hmac("sha512", PASSWORD.encode(), salt, rounds)
    texts = [base64.b64encode(part).decode() for part in (salt, key)]
    path = folder / "passwords"
    path.write_text(f"{USER}:$7${rounds}${texts[0]}${texts[1]}\n")
    path.chmod(0o600)
    return path


@contextmanager
def https(certificate: Path, key: Path) -> Iterator[Server]:
    """Run a server that answers with ANSWER."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with Encrypted() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.respond_with(json.dumps(ANSWER).encode())
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def receiver(inputs: str, folder: Path) -> Iterator[None]:
    """Run `skypane receive` in a process that ends as Ctrl-C ends it."""
    (folder / "inputs.yaml").write_text(inputs, encoding="utf-8")
    command = [sys.executable, "-m", "skypane", "receive", "inputs.yaml"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0


def publish(port: int) -> None:
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    client.username_pw_set(USER, PASSWORD)
    client.connect("127.0.0.1", port)
    client.loop_start()
    for message in MESSAGES:
        client.publish(f"meters/{message['meter']}", json.dumps(message), qos=1).wait_for_publish(30)
    client.disconnect()
    client.loop_stop()
