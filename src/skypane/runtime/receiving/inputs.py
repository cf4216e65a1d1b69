"""What a user lists to be received: one frozen value per input, and the folder that all of them are written to.

    folder: received
    inputs:
      - {name: basel, listen: "0.0.0.0:7001", acknowledge: true}
      - {name: bern, connect: "bern.example:7001"}
      - {name: meters, mqtt: "mqtts://broker.example", topic: "meters/+", user: skypane, password: $METERS_PASSWORD}
      - {name: prices, http: "https://prices.example/now.json", every: 10 seconds}

The key that says where an input comes from chooses its kind. A secret is "$NAME", with the environment variable that
holds it: a list, a log and a state hold names only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar
from urllib.parse import urlsplit

from skypane.naming import instead
from skypane.places import Place
from skypane.runtime.environment import check_named
from skypane.runtime.receiving.certificates import Certificates
from skypane.runtime.receiving.log import SEGMENT_BYTES
from skypane.types import ConfigError, Duration, micros

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_SMALLEST = 1 << 10
MOST_TOPICS = 10_000
"""Topics of one input, each a folder: whoever may publish names them."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen(Certificates):
    """Lines that clients send over TCP to a port of ours.

    listen       "address:port"; 0.0.0.0 is every address of this machine
    acknowledge  tell a client after each block how many of its connection's lines are on disk, a number a line

    With a certificate it is TLS, and with ca as well only clients with a certificate of that authority are let in.
    A client that sends on from what it was told of loses nothing when a receiver dies; what was written and not told is in
    the log twice then. Without acknowledge a client cannot know what was received.
    """

    kind: ClassVar = "listen"
    name: str
    listen: str
    acknowledge: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name)
        address(self.listen, "listen")
        if self.ca is not None and self.certificate is None:
            raise ConfigError("listen with ca needs certificate: who checks clients' certificates shows one of his own")
        self.settle()

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    @property
    def is_open(self) -> bool:
        """Whether other machines reach the port, and no one is asked who he is."""
        return self.ca is None and not _is_here(address(self.listen, "listen")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect(Certificates):
    """Lines that a server sends over TCP to whoever connects: from which line on, when we come back, is its affair.

    connect  "host:port"
    tls      whether the connection is encrypted; the server's certificate must be that of its host
    """

    kind: ClassVar = "connect"
    name: str
    connect: str
    tls: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name)
        address(self.connect, "connect")
        self.settle_for("tls: true")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mqtt(Certificates):
    """Messages of an MQTT 5 broker, a line each, acknowledged (QoS 1) when they are on disk.

    mqtt          "mqtt://host:port", or mqtts:// for TLS; ports are 1883 and 8883 if not given
    topic         the filter to subscribe to: +, # and $share/... as MQTT has them
    by_topic      whether each topic is an input of its own, in a folder below that of the name
    client        what the broker keeps what it holds for us by: no other client of the broker's may have it
    user, password   what to log in with; the password, "$NAME", stands in the environment, and the user may
    most_topics   by_topic: of how many topics at most a log is kept; one more is an error, and its messages wait with the broker
    held_for      how long the broker is to keep what comes while no receiver runs
    """

    kind: ClassVar = "mqtt"
    name: str
    mqtt: str
    topic: str
    by_topic: bool = False
    most_topics: int = MOST_TOPICS
    client: str = ""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    held_for: Duration = "7 days"

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_url("mqtt", self.mqtt, ("mqtt", "mqtts"), 'user, and password: "$NAME"')
        _check_text("topic", self.topic, "a filter such as 'meters/+'")
        if self.password is not None:
            check_named(self.password, "password")
        _check_topics(self.most_topics)
        _set_length(self, "held_for")
        self.settle_for("mqtts://")
        object.__setattr__(self, "client", self.client or f"skypane-{self.name}")

    @property
    def host(self) -> str:
        return urlsplit(self.mqtt).hostname or ""

    @property
    def tls(self) -> bool:
        return urlsplit(self.mqtt).scheme == "mqtts"

    @property
    def port(self) -> int:
        return urlsplit(self.mqtt).port or (8883 if self.tls else 1883)


@dataclass(frozen=True, slots=True, kw_only=True)
class Http(Certificates):
    """What an address answers, asked for again and again; an answer that is as before adds nothing.

    http        http:// or https://
    every       how often to ask, unless the server says how long to wait
    timeout     how long to wait for an answer
    format      "json": an object is a line, a list is a line for each of its values; "lines": as they are
    header      lines: the first names columns, and is left out; another than before is an error
    headers     of the request by name, each "$NAME": they may hold what to log in with
    redirects   whether a server may send us to another host; that one is not told the headers
    """

    kind: ClassVar = "http"
    name: str
    http: str
    every: Duration = "10 seconds"
    timeout: Duration = "10 seconds"
    format: str = "json"
    header: bool = False
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    redirects: bool = False

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_url("http", self.http, ("http", "https"), 'headers: {Authorization: "$NAME"}')
        for name in ("every", "timeout"):
            _set_length(self, name)
        if self.format not in {"json", "lines"}:
            raise ConfigError(f"format must be json or lines, got {self.format!r}")
        if self.header and self.format == "json":
            raise ConfigError("header is for format lines; leave it out")
        _check_headers(self.headers)
        self.settle_for("https://")

    @property
    def tls(self) -> bool:
        return urlsplit(self.http).scheme == "https"


Received: TypeAlias = Listen | Connect | Mqtt | Http
KINDS: tuple[type[Received], ...] = (Listen, Connect, Mqtt, Http)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """All that one process receives.

    folder         where each input has a folder of its own, by its name
    segment_bytes  of which size a segment is followed by a new one
    read_by        checkpoints of the queries that read here: what all of them have passed is removed; none: all is kept
    """

    inputs: tuple[Received, ...]
    folder: str
    segment_bytes: int = SEGMENT_BYTES
    read_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Place.of(self.folder, "folder").of_this_machine("a receiver writes"))
        read_by = tuple(
            Place.of(one, "read_by").of_this_machine("a receiver reads") for one in _listed(self.read_by, "read_by")
        )
        object.__setattr__(self, "read_by", read_by)
        _check_size(self.segment_bytes)
        names = [one.name for one in self.inputs]
        if not names:
            raise ConfigError("inputs is empty; list at least one")
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"inputs lists {name!r} twice; name them differently")

    @classmethod
    def of(cls, given: object) -> Receipts:
        """Return what a mapping, as it comes from YAML, means; ConfigError naming the field if it means nothing."""
        if not isinstance(given, Mapping):
            raise ConfigError(f"what is received is told by a mapping with folder and inputs, got {given!r}")
        listed = _listed(given.get("inputs", ()), "inputs")
        inputs = tuple(received(one, f"inputs[{at}]") for at, one in enumerate(listed))
        return _built(cls, {**given, "inputs": inputs}, "")


def received(given: object, where: str) -> Received:
    """Return the input that a mapping means; ConfigError, naming `where`, if it means none."""
    if isinstance(given, KINDS):
        return given
    kinds = [one.kind for one in KINDS]
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a mapping with one of {', '.join(kinds)}, got {given!r}")
    chosen = [one for one in KINDS if one.kind in given]
    if len(chosen) != 1:
        said = "none" if not chosen else " and ".join(one.kind for one in chosen)
        raise ConfigError(f"{where} needs one of {', '.join(kinds)}, which say where it comes from, and has {said}")
    return _built(chosen[0], given, f"{where}: ")


def _built(kind: type[T], given: Mapping[Any, Any], where: str) -> T:
    known = fields(kind)  # type: ignore[arg-type]
    names = [one.name for one in known]
    for name in given:
        if name not in names:
            raise ConfigError(f"{where}there is no {name!r}; {instead(str(name), names)}")
    for one in known:
        if one.default is MISSING and one.default_factory is MISSING and one.name not in given:
            raise ConfigError(f"{where}needs {one.name}")
    try:
        return kind(**given)
    except ConfigError as error:
        raise ConfigError(f"{where}{error}") from None


def address(text: object, name: str) -> tuple[str, int]:
    """Return host and port of "host:port"; ConfigError, naming the field, if it is none."""
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise ConfigError(f"{name} must be host:port, such as localhost:7001, got {text!r}")
    return host.strip("[]"), int(port)


def _is_here(host: str) -> bool:
    """Return whether only this machine reaches an address; a name is what this machine takes it for, which may change."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"name is that of a folder, letters, digits and _ . - in it, got {name!r}")


def _check_url(name: str, url: object, schemes: tuple[str, ...], remedy: str) -> None:
    """Refuse what is no URL, and what has a password in it, without repeating it."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        known = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise ConfigError(f"{name} must be a URL such as {schemes[0]}://host, one of {', '.join(schemes)}")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"{name} has a user or a password in its URL, which would be logged; use {remedy}")


def _listed(given: Any, name: str) -> Iterable[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ConfigError(f"{name} must be a list, got {given!r}")
    return given


def _check_text(name: str, text: Any, what: str) -> None:
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{name} must be {what}, got {text!r}")


def _check_headers(given: Any) -> None:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ConfigError('headers must be a mapping, {Authorization: "$NAME"}')  # it may hold a secret: not repeated
    for name, value in given.items():
        check_named(value, f"header {name}")


def _check_size(given: Any) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < _SMALLEST:
        raise ConfigError(f"segment_bytes must be a number of at least {_SMALLEST}, got {given!r}")


def _check_topics(given: Any) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise ConfigError(f"most_topics must be a whole number of at least 1, got {given!r}")


def _set_length(of: Any, name: str) -> None:
    length = micros(getattr(of, name), name)
    if length <= 0:
        raise ConfigError(f"{name} must be longer than nothing, got {getattr(of, name)!r}")
    object.__setattr__(of, name, length)
