from __future__ import annotations

import pytest

from skypane.runtime.receiving.input_list import Listen, Mqtt, ReceivedInputs
from skypane.types import ConfigError

TCP = {"name": "a", "listen": "localhost:1"}


def test_a_list_is_read(tmp_path):
    given = {"folder": tmp_path, "segment_bytes": 4096, "read_by": [tmp_path / "state"], "inputs": [
        {"name": "a", "listen": "0.0.0.0:7001", "acknowledge": True},
        {"name": "b", "connect": "[::1]:7001"},
        {"name": "c", "mqtt": "mqtts://broker", "topic": "t/#", "held_for": "1 day"},
        {"name": "d", "http": "https://prices/now", "every": "1 minute", "headers": {"Authorization": "$TOKEN"}},
    ]}  # fmt: skip
    receipts = ReceivedInputs.of(given)
    assert receipts.folder == str(tmp_path)
    meters = receipts.inputs[2]
    assert isinstance(meters, Mqtt)
    assert (meters.host, meters.port, meters.tls, meters.client) == ("broker", 8883, True, "skypane-c")


@pytest.mark.parametrize(("host", "reached"), [("127.0.0.1", False), ("localhost", False), ("[::1]", False), ("127.8.0.1", False),
                                               ("0.0.0.0", True), ("[::]", True), ("192.168.1.7", True), ("here", True)])  # fmt: skip  # noqa: S104 - that is what is tested
def test_a_port_is_open_if_other_machines_reach_it_and_clients_need_no_certificate(host: str, reached: bool):
    assert Listen(name="a", listen=f"{host}:1").is_open == reached
    assert not Listen(name="a", listen=f"{host}:1", certificate="/c", ca="/ca").is_open


@pytest.mark.parametrize(("inputs", "message"), [
    ([], "inputs is empty"),
    ("a", "inputs must be a list, got 'a'"),
    ([7], r"inputs\[0\] must be a mapping with one of listen, connect, mqtt, http"),
    ([{"name": "a"}], r"inputs\[0\] needs exactly one of listen, connect, mqtt, http, .* got none"),
    ([{**TCP, "connect": "b:1"}], "got listen and connect"),
    ([TCP, {"name": "a", "connect": "b:1"}], "inputs lists 'a' twice"),
    ([{"listen": "localhost:1"}], r"inputs\[0\]: needs name"),
    ([{"name": "../a", "listen": "localhost:1"}], "name must be a folder name"),
    ([{"name": "a", "listen": "localhost"}], "listen must be host:port"),
    ([{"name": "a", "listen": "localhost:99999"}], "listen must be host:port"),
    ([{**TCP, "acknowlege": True}], "unknown key 'acknowlege'; did you mean 'acknowledge'"),
    ([{"name": "a", "mqtt": "tcp://b", "topic": "t"}], "mqtt must be a URL such as mqtt://host"),
    ([{"name": "a", "mqtt": "mqtt://b", "topic": ""}], "topic must be a filter"),
    ([{"name": "a", "mqtt": "mqtt://b", "topic": "t", "most_topics": 0}], "most_topics must be a whole number of at least 1"),
    ([{"name": "a", "http": "file:///etc/passwd"}], "http must be a URL such as http://host"),
    ([{"name": "a", "http": "http://b:x/"}], "http must be a URL"),
    ([{"name": "a", "http": "http://b/a c"}], "%20 stands for a blank in it"),
    ([{"name": "a", "http": "http://b/\u00e9"}], "http must be a URL"),
    ([{"name": "a", "http": "http://b", "headers": {"A\r\nEvil": "$T"}}], r"headers: 'A\\r\\nEvil' cannot be set"),
    ([{"name": "a", "http": "http://b", "headers": {"Content-Length": "$T"}}], "headers: 'Content-Length' cannot be set"),
    ([{"name": "a", "http": "http://b", "every": 10}], "every must be a text such as"),
    ([{"name": "a", "http": "http://b", "timeout": "0 s"}], "timeout must be longer than 0"),
    ([{"name": "a", "http": "http://b", "format": "xml"}], "format must be json or lines, got 'xml'"),
    ([{"name": "a", "http": "http://b", "header": True}], "header is only for format lines"),
    ([{**TCP, "most_clients": 0}], "most_clients must be a whole number of at least 1, got 0"),
    ([{**TCP, "acknowledge": "no"}], "acknowledge must be true or false, got 'no'"),
    ([{"name": "a", "http": "http://b", "redirects": 1}], "redirects must be true or false, got 1"),
    ([{"name": "a", "http": "http://b", "ca": "ca.pem"}], "ca is only for encrypted connections; leave it out, or use https://"),
    ([{"name": "a", "mqtt": "mqtt://b", "topic": "t", "key": "k"}], "key is only for encrypted connections; leave it out, or use mqtts://"),
    ([{"name": "a", "connect": "b:1", "certificate": "c"}], "certificate is only for encrypted connections; leave it out, or use tls: true"),
    ([{"name": "a", "connect": "b:1", "tls": True, "key": "k"}], "key needs certificate"),
    ([{**TCP, "ca": "ca.pem"}], "listen with ca needs certificate"),
])  # fmt: skip
def test_an_invalid_list_is_refused(inputs, message: str):
    with pytest.raises(ConfigError, match=message):
        ReceivedInputs.of({"folder": "received", "inputs": inputs})


def test_an_order_by_time_has_its_keys_beside_the_inputs():
    given = {"folder": "received", "order": "by time", "time": "at", "idle_after": "5 seconds", "inputs": [TCP]}
    order = ReceivedInputs.of(given).merge
    assert order is not None
    assert (order.time, order.wait, order.format) == ("at", 5.0, "json")
    assert ReceivedInputs.of({"folder": "received", "inputs": [TCP]}).merge is None


@pytest.mark.parametrize(("given", "message"), [
    ({"order": "by name"}, "order must be 'by time', or be left out, got 'by name'"),
    ({"order": "by time"}, "order 'by time' needs time, the field with the event time"),
    ({"time": "at"}, "time is only for order: by time; leave it out"),
    ({"order": "by time", "time": "at", "idle_after": 5}, "idle_after must be a text such as"),
    ({"order": "by time", "time": "at", "inputs": [{**TCP, "name": "by-time"}]}, "input by-time: with order 'by time' the merged"),
    ({"order": "by time", "time": "at", "inputs": [{"name": "m", "mqtt": "mqtt://b", "topic": "t", "by_topic": True}]},
     "input m: by_topic makes inputs while the receiver runs"),
    ({"folder": "s3://bucket/x"}, "a receiver writes files of this machine"),
    ({"segment_bytes": 1}, "segment_bytes must be a whole number of at least 1024"),
    ({"read_by": "state"}, "read_by must be a list"),
    ({"fold": "x"}, "unknown key 'fold'; did you mean 'folder'"),
])  # fmt: skip
def test_settings_that_are_not_complete_or_not_possible_are_refused(given, message: str):
    with pytest.raises(ConfigError, match=message):
        ReceivedInputs.of({"folder": "received", "inputs": [TCP], **given})


@pytest.mark.parametrize(("given", "message"), [
    ({"mqtt": "mqtt://b", "topic": "t", "password": "swordfish"}, r'password must be "\$NAME", the name of'),
    ({"mqtt": "mqtt://b", "topic": "t", "password": "$sword-fish"}, r'password must be "\$NAME"'),
    ({"http": "http://b", "headers": {"Authorization": "Bearer swordfish"}}, r'header Authorization must be "\$NAME"'),
    ({"http": "http://b", "headers": "swordfish"}, "headers must be a mapping"),
    ({"mqtt": "mqtt://me:swordfish@b", "topic": "t"}, "mqtt has a user or a password in its URL"),
    ({"http": "http://me:swordfish@b"}, "http has a user or a password in its URL"),
    ({"http": "http://swordfish@b"}, "http has a user or a password in its URL"),
])  # fmt: skip
def test_a_secret_is_refused_and_not_repeated(given, message: str):
    with pytest.raises(ConfigError, match=message) as caught:
        ReceivedInputs.of({"folder": "r", "inputs": [{"name": "a", **given}]})
    assert "swordfish" not in str(caught.value)
