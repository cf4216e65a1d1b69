"""Encrypted connections with certificates of a real authority: a trusted peer is received, and no other."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.receiving.authority import authority, signed
from tests.runtime.receiving.broker import mosquitto
from tests.runtime.receiving.logs import lines, until
from tests.runtime.receiving.test_http import Server
from tests.runtime.receiving.test_mqtt import publish, publisher
from tests.runtime.receiving.test_tcp import dialled
from tests.servers.ports import free_ports

from skypane.runtime.receiving.receiver import Receiver
from skypane.types import ConfigError

pytestmark = pytest.mark.usefixtures("impatient")


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the files: an authority's, a certificate of ours, and another authority's."""
    folder = tmp_path_factory.mktemp("certificates")
    ca = authority(folder)
    certificate, key = signed(ca, "ours")
    return {"ca": str(ca), "certificate": str(certificate), "key": str(key), "other": str(authority(folder, "other"))}


def receiving(folder: Path, **given: Any) -> dict[str, Any]:
    return {"folder": str(folder / "received"), "inputs": [{"name": "in", **given}]}


@pytest.fixture
def ours(certified: dict[str, str]) -> ssl.SSLContext:
    """The context of a server with our certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certified["certificate"], certified["key"])
    return context


def test_messages_of_a_broker_that_the_authority_has_signed_are_received_and_of_no_other(tmp_path, certified):
    port, plain = free_ports(2)
    settings = (
        "allow_anonymous true", f"listener {port} 127.0.0.1", f"certfile {certified['certificate']}",
        f"keyfile {certified['key']}", f"cafile {certified['ca']}", "require_certificate true",
    )  # fmt: skip
    settings_of_input = {"mqtt": f"mqtts://127.0.0.1:{port}", "topic": "meters/+", "certificate": certified["certificate"],
             "key": certified["key"]}  # fmt: skip
    with mosquitto(tmp_path / "broker", plain, *settings):
        for ca in (None, certified["other"]):
            with Receiver(receiving(tmp_path, **settings_of_input, ca=ca)) as one:
                until(lambda: "CERTIFICATE_VERIFY_FAILED" in one.seen[0].reason, "it is trusted")
        with Receiver(receiving(tmp_path, **settings_of_input, ca=certified["ca"])) as one:
            until(lambda: one.seen[0].state == "receiving", "it is not connected")
            with publisher(plain) as client:
                publish(client, "meters/a", ["7"])
            until(lambda: one.seen[0].lines == 1, "the message is missing")
    assert lines(tmp_path / "received" / "in") == ["7"]


def test_clients_with_a_certificate_of_the_authority_are_let_in_and_no_others(tmp_path, port, certified):
    ours = {name: certified[name] for name in ("ca", "certificate", "key")}
    with Receiver(receiving(tmp_path, listen=f"127.0.0.1:{port}", acknowledge=True, **ours)):
        client = ssl.create_default_context(cafile=certified["ca"])
        with dialled(port) as connection:
            assert _answer(client, connection, b"0\n") == b""
        client.load_cert_chain(certified["certificate"], certified["key"])
        with client.wrap_socket(dialled(port), server_hostname="127.0.0.1") as known:
            known.sendall(b"1\n2\n")
            assert known.recv(10) in {b"1\n2\n", b"2\n", b"1\n"}
            until(lambda: lines(tmp_path / "received" / "in") == ["1", "2"], "lines are missing")


class Encrypted(Server):
    """Closes after its threads, and reports no peer that does not trust it."""

    daemon_threads = False  # so that closing waits for them: each has a socket to close

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a peer that does not trust us hangs up."""


def _answer(client: ssl.SSLContext, connection: socket.socket, text: bytes) -> bytes:
    """Return what is answered; nothing if we are hung up on, which only reading shows under TLS 1.3."""
    try:
        with client.wrap_socket(connection, server_hostname="127.0.0.1") as encrypted:
            encrypted.sendall(text)
            return encrypted.recv(10)
    except OSError:
        return b""


def test_lines_of_a_server_that_the_authority_has_signed_are_received(tmp_path, certified, ours):
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings_of_input = {"connect": f"127.0.0.1:{server.getsockname()[1]}", "tls": True, "ca": certified["ca"]}
        with (
            Receiver(receiving(tmp_path, **settings_of_input)) as one,
            ours.wrap_socket(server.accept()[0], server_side=True) as connection,
        ):
            connection.sendall(b"1\n2\n")
            until(lambda: one.seen[0].lines == 2, "lines are missing")
    assert lines(tmp_path / "received" / "in") == ["1", "2"]


def test_an_answer_over_https_is_that_of_a_server_that_the_authority_has_signed(tmp_path, certified, ours):
    with Encrypted() as server:
        server.socket = ours.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        server.respond_with(b"[1, 2]")
        settings_of_input = {"http": server.url.replace("http:", "https:"), "every": "50 ms"}
        with Receiver(receiving(tmp_path, **settings_of_input)) as one:
            until(lambda: "CERTIFICATE_VERIFY_FAILED" in one.seen[0].reason, "it is trusted")
        with Receiver(receiving(tmp_path, **settings_of_input, ca=certified["ca"])) as one:
            until(lambda: one.seen[0].lines == 2, "lines are missing")
        server.shutdown()
    assert lines(tmp_path / "received" / "in") == ["1", "2"]


def test_files_that_cannot_be_used_are_reported_at_once(tmp_path, certified):
    nowhere = str(tmp_path / "nowhere.pem")
    with pytest.raises(ConfigError, match=r"input in: ca .*nowhere.pem cannot be used: No such file"):
        Receiver(receiving(tmp_path, mqtt="mqtts://there", topic="t", ca=nowhere))
    with pytest.raises(ConfigError, match=r"input in: certificate .*ca.pem with key .*ours.key cannot be used"):
        Receiver(receiving(tmp_path, listen="127.0.0.1:1", certificate=certified["ca"], key=certified["key"]))
