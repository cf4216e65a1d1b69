"""The user's list of inputs to receive: one frozen value per input, and the folder that they are written to.

    folder: received
    inputs:
      - {name: basel, listen: "0.0.0.0:7001", acknowledge: true}
      - {name: bern, connect: "bern.example:7001"}
      - {name: meters, mqtt: "mqtts://broker.example", topic: "meters/+", user: skypane, password: $METERS_PASSWORD}
      - {name: prices, http: "https://prices.example/now.json", every: 10 seconds}

The key that names an input's origin (listen, connect, mqtt, http) chooses its kind. A secret is given as "$NAME", the
environment variable that holds it, so lists, logs and states hold names only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias, TypeVar
from urllib.parse import urlsplit

from skypane.locations import Location
from skypane.naming import instead, shortened
from skypane.runtime.environment import check_named
from skypane.runtime.receiving.certificates import Certificates
from skypane.runtime.receiving.log import SEGMENT_BYTES
from skypane.runtime.receiving.merge_commit import MERGED, REJECTED
from skypane.runtime.receiving.time_order import BY_TIME, TimeOrder
from skypane.types import ConfigError, Duration, micros, truth

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OF_CLIENTS = frozenset({"connection", "content-length", "trailer", "transfer-encoding", "upgrade"})
"""Headers that say how a request is sent."""
_IN_URL = re.compile("[!-~]+")
_SMALLEST = 1 << 10
MOST_CLIENTS = 1_000
"""Clients of a port, unless it says otherwise: each may have a mebibyte of an unfinished line in memory."""
MOST_TOPICS = 10_000
"""The largest number of topics of one input: each has a folder, and publishers choose the topics."""

_OF_ORDER = tuple(one.name for one in fields(TimeOrder))

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen(Certificates):
    """Lines that clients send over TCP to a port of the receiver.

    listen       "address:port"; 0.0.0.0 means all addresses of this machine
    acknowledge  send a client, after each block, the number of its connection's lines that are on disk, as a line
    most_clients  the largest number of clients at once; one more takes the place of the one that has been silent for longest

    With a certificate the connection uses TLS; with ca as well, only clients with a certificate of that authority are
    admitted. A client that resumes after its last acknowledged line loses nothing if the receiver dies; lines that were
    written but not acknowledged are then in the log twice. Without acknowledge a client cannot know what was received.
    """

    kind: ClassVar = "listen"
    name: str
    listen: str
    acknowledge: bool = False
    most_clients: int = MOST_CLIENTS

    def __post_init__(self) -> None:
        _check_name(self.name)
        address(self.listen, "listen")
        _check_number("most_clients", self.most_clients, 1)
        if self.ca is not None and self.certificate is None:
            raise ConfigError("listen with ca needs certificate: a server that checks clients must present its own")
        self.settle()

    @property
    def tls(self) -> bool:
        return self.certificate is not None

    @property
    def is_open(self) -> bool:
        """Whether other machines reach the port and clients are not authenticated."""
        return self.ca is None and not _is_here(address(self.listen, "listen")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect(Certificates):
    """Lines that a server sends over TCP; after a reconnect the server decides at which line it continues.

    connect  "host:port"
    tls      whether the connection is encrypted; the server's certificate must match its host
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
    """Messages of an MQTT 5 broker, one line each, acknowledged (QoS 1) when they are on disk.

    mqtt          "mqtt://host:port", or mqtts:// for TLS; default ports are 1883 and 8883
    topic         the filter to subscribe to, with MQTT's +, # and $share/...
    by_topic      whether each topic is a separate input, in a subfolder of the input's folder
    client        the client identifier under which the broker keeps the session; it must be unique at the broker
    user, password   the login; the password must be "$NAME", an environment variable, and the user may be
    most_topics   by_topic: the largest number of topics; messages of others go to one log, .rejected
    held_for      how long the broker keeps messages while no receiver runs
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
        _check_number("most_topics", self.most_topics, 1)
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
    """Responses of a URL that is polled; an unchanged response adds nothing.

    http        http:// or https://
    every       interval between requests, unless the server sends Retry-After
    timeout     how long to wait for a response
    format      "json": an object is one line, a list is one line per value; "lines": lines as they are
    header      lines: whether the first line names the columns; it is left out, and a change of it is an error
    headers     headers of the request by name, each "$NAME", since they may hold a login
    redirects   whether redirects to another host are followed; the headers are not sent there
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
            raise ConfigError("header is only for format lines; leave it out")
        _check_headers(self.headers)
        self.settle_for("https://")

    @property
    def tls(self) -> bool:
        return urlsplit(self.http).scheme == "https"


Received: TypeAlias = Listen | Connect | Mqtt | Http
KINDS: tuple[type[Received], ...] = (Listen, Connect, Mqtt, Http)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedInputs:
    """All inputs that one process receives.

    folder         the folder in which each input has a subfolder, named as the input
    segment_bytes  size at which a segment is followed by a new one
    read_by        checkpoints of the queries that read the logs: segments that all of them have passed are removed;
                   empty: all segments are kept
    order          "by time": all inputs are also merged into one log, in the order of event time; empty: they are not
    time, time_unit, format, columns, idle_after, max_ahead   of the order, see TimeOrder; None: its default
    """

    inputs: tuple[Received, ...]
    folder: str
    segment_bytes: int = SEGMENT_BYTES
    read_by: tuple[str, ...] = ()
    order: str = ""
    time: str | None = None
    time_unit: str | None = None
    format: str | None = None
    columns: tuple[str, ...] | None = None
    idle_after: Duration | None = None
    max_ahead: Duration | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Location.of(self.folder, "folder").of_this_machine("a receiver writes"))
        read_by = tuple(
            Location.of(one, "read_by").of_this_machine("a receiver reads") for one in _listed(self.read_by, "read_by")
        )
        object.__setattr__(self, "read_by", read_by)
        _check_number("segment_bytes", self.segment_bytes, _SMALLEST)
        names = [one.name for one in self.inputs]
        if not names:
            raise ConfigError("inputs is empty; list at least one")
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"inputs lists {name!r} twice; name them differently")
        if self.merge is not None:
            self._check_merged(names)

    @property
    def merge(self) -> TimeOrder | None:
        """The order in which all inputs are merged; None if they are not."""
        given = {name: getattr(self, name) for name in _OF_ORDER if getattr(self, name) is not None}
        if self.order not in ("", BY_TIME):
            raise ConfigError(f"order must be {BY_TIME!r}, or be left out, got {self.order!r}")
        if self.order:
            return TimeOrder(**{"time": "", **given})
        if given:
            raise ConfigError(f"{next(iter(given))} is only for order: {BY_TIME}; leave it out")
        return None

    def _check_merged(self, names: Iterable[str]) -> None:
        for name in names:
            if name in (MERGED, REJECTED):
                raise ConfigError(f"input {name}: with order {BY_TIME!r} the merged log has that name; use another one")
        for one in self.inputs:
            if isinstance(one, Mqtt) and one.by_topic:
                raise ConfigError(
                    f"input {one.name}: by_topic makes inputs while the receiver runs, which order {BY_TIME!r} cannot "
                    "wait for; list each topic as an input"
                )

    @classmethod
    def of(cls, given: object) -> ReceivedInputs:
        """Return the list that a mapping from YAML describes; raise ConfigError, naming the field, if it is invalid."""
        if not isinstance(given, Mapping):
            raise ConfigError(f"the list of inputs must be a mapping with folder and inputs, got {given!r}")
        listed = _listed(given.get("inputs", ()), "inputs")
        inputs = tuple(received(one, f"inputs[{at}]") for at, one in enumerate(listed))
        return _built(cls, {**given, "inputs": inputs}, "")


def received(given: object, where: str) -> Received:
    """Return the input that a mapping describes; raise ConfigError, naming `where`, if it is invalid."""
    if isinstance(given, KINDS):
        return given
    kinds = [one.kind for one in KINDS]
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} must be a mapping with one of {', '.join(kinds)}, got {given!r}")
    chosen = [one for one in KINDS if one.kind in given]
    if len(chosen) != 1:
        got = "none" if not chosen else " and ".join(one.kind for one in chosen)
        raise ConfigError(f"{where} needs exactly one of {', '.join(kinds)}, the input's origin, got {got}")
    return _built(chosen[0], given, f"{where}: ")


def _built(kind: type[T], given: Mapping[Any, Any], where: str) -> T:
    known = fields(kind)  # type: ignore[arg-type]
    names = [one.name for one in known]
    for name in given:
        if name not in names:
            raise ConfigError(f"{where}unknown key {name!r}; {instead(str(name), names)}")
    for one in known:
        if one.default is MISSING and one.default_factory is MISSING and one.name not in given:
            raise ConfigError(f"{where}needs {one.name}")
    truths = {one.name for one in known if one.type == "bool"}
    try:
        return kind(**{name: truth(value, name) if name in truths else value for name, value in given.items()})
    except ConfigError as error:
        raise ConfigError(f"{where}{error}") from None


def address(text: object, name: str) -> tuple[str, int]:
    """Return host and port of "host:port"; raise ConfigError, naming the field, for other text."""
    host, _, port = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise ConfigError(f"{name} must be host:port, such as localhost:7001, got {text!r}")
    return host.strip("[]"), int(port)


def _is_here(host: str) -> bool:
    """Return whether only this machine reaches an address; of names only localhost counts, since others may change."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(f"name must be a folder name of letters, digits and _ . -, got {name!r}")


def _check_url(name: str, url: object, schemes: tuple[str, ...], remedy: str) -> None:
    """Raise ConfigError for an invalid URL, or one with a password, without repeating it."""
    try:
        parts = urlsplit(url if isinstance(url, str) and _IN_URL.fullmatch(url) else "")
        known = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known:
        raise ConfigError(
            f"{name} must be a URL such as {schemes[0]}://host, one of {', '.join(schemes)}; %20 stands for a blank in it"
        )
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
        raise ConfigError('headers must be a mapping, {Authorization: "$NAME"}')  # not repeated: it may hold a secret
    for name, value in given.items():
        if not _HEADER.fullmatch(name) or name.lower() in _OF_CLIENTS:
            raise ConfigError(
                f"headers: {shortened(repr(name))} cannot be set: write a name such as Authorization or X-Api-Key"
            )
        check_named(value, f"header {name}")


def _check_number(name: str, given: Any, least: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise ConfigError(f"{name} must be a whole number of at least {least}, got {given!r}")


def _set_length(of: Any, name: str) -> None:
    length = micros(getattr(of, name), name)
    if length <= 0:
        raise ConfigError(f"{name} must be longer than 0, got {getattr(of, name)!r}")
    object.__setattr__(of, name, length)
