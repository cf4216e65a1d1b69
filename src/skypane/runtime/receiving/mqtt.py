"""Messages of an MQTT 5 broker. Each is acknowledged when it is on disk, and not before.

The broker holds what comes while no receiver runs, and what was not acknowledged; so nothing is lost on this side. A
receiver that is killed, or loses its connection, between a sync and the acknowledgement gets those messages again: they
are in the log twice then, and nothing of MQTT's could tell them from others with the same text. A clean stop
acknowledges all that is written, and nothing comes twice.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from skypane.runtime.background import in_background
from skypane.runtime.environment import held
from skypane.runtime.receiving.inputs import Mqtt
from skypane.runtime.receiving.intake import Intake
from skypane.runtime.receiving.messages import line_of
from skypane.runtime.receiving.room import Room
from skypane.runtime.receiving.seen import Seen
from skypane.types import ConfigError, SkypaneError, micros

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

IN_FLIGHT = 1_000
"""Messages that a broker may send before the first of them is acknowledged."""

LARGEST = 16 << 20
"""Bytes of a message with its topic: a broker is told to send none that has more."""

_BEHIND = 32 << 20
"""Bytes of messages that wait to be written: then none is taken from the connection."""
_BESIDES = 200
"""Bytes that a message takes in memory besides what it says."""
_KEEPALIVE = 30
_GIVE_UP = 10.0
"""Seconds that a broker may take to accept a connection, and for the last acknowledgements to go out."""


def check(given: Mqtt, environment: Mapping[str, str]) -> None:
    """Raise ConfigError where the client is not installed, or an environment variable is not set."""
    try:
        import paho.mqtt.client  # noqa: F401, PLC0415
    except ImportError as error:
        raise ConfigError("MQTT needs paho-mqtt, which is not installed: pip install 'skypane[mqtt]'") from error
    _login(given, environment)


def _login(given: Mqtt, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return user and password; ConfigError for an environment variable that is not set."""
    user = None if given.user is None else held(given.user, "user", environment)
    return user, None if given.password is None else held(given.password, "password", environment)


async def subscribe(
    given: Mqtt, seen: Seen, intake_of: Callable[[str], Intake | None], environment: Mapping[str, str]
) -> None:
    """Receive until cancelled; OSError if the broker refuses, hangs up, or a message cannot be written.

    intake_of  the intake of a topic; None while too many others have something to write
    """
    session = _Session(given, seen, intake_of, environment)
    try:
        await session.connected()
        await asyncio.wait({session.over})  # a stop ends the wait, not the connection
        session.over.result()
    finally:
        await session.leave()


class _Session:
    """One connection, on one event loop; paho calls back in a thread of its own."""

    def __init__(
        self, given: Mqtt, seen: Seen, intake_of: Callable[[str], Intake | None], environment: Mapping[str, str]
    ) -> None:
        self.given = given
        self.seen = seen
        self.intake_of = intake_of
        self.loop = asyncio.get_running_loop()
        self.over: Future[None] = self.loop.create_future()
        self._welcome: Future[None] = self.loop.create_future()
        self._heard: Future[None] = self.loop.create_future()
        self._unwritten: set[Future[None]] = set()
        self._leaving = False
        #: messages that have come, and whose intakes have not
        self._arrivals: deque[MQTTMessage] = deque()
        self._room = Room(_BEHIND)
        self.client = self._made(environment)

    def _made(self, environment: Mapping[str, str]) -> Client:
        from paho.mqtt.client import Client  # noqa: PLC0415 - an extra
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion  # noqa: PLC0415

        given = self.given
        client = Client(
            CallbackAPIVersion.VERSION2, given.client, protocol=MQTTProtocolVersion.MQTTv5, manual_ack=True,
            reconnect_on_failure=False,
        )  # fmt: skip
        user, password = _login(given, environment)
        if user is not None or password is not None:
            client.username_pw_set(user, password)
        if (encrypted := given.context()) is not None:
            client.tls_set_context(encrypted)
        client.connect_timeout = _GIVE_UP
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_unsubscribe = lambda *_: self._tell(_done, self._heard)
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        return client

    async def connected(self) -> None:
        """Connect and subscribe; ConnectionError, with the broker's reason, if it will not have us."""
        from paho.mqtt.packettypes import PacketTypes  # noqa: PLC0415
        from paho.mqtt.properties import Properties  # noqa: PLC0415

        wanted: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        wanted.SessionExpiryInterval = min(micros(self.given.held_for) // 1_000_000, (1 << 32) - 1)
        wanted.ReceiveMaximum = IN_FLIGHT
        wanted.MaximumPacketSize = LARGEST
        host, port = self.given.host, self.given.port
        connecting = in_background(
            lambda: self.client.connect(host, port, _KEEPALIVE, clean_start=False, properties=wanted)
        )
        await asyncio.wrap_future(connecting)
        self.client.loop_start()
        async with asyncio.timeout(_GIVE_UP):
            await self._welcome

    async def leave(self) -> None:
        """Take no more, acknowledge what is written, and hang up: the broker holds the rest."""
        self._leaving = True
        self._take()
        if self._unwritten:
            await asyncio.wait(self._unwritten, timeout=_GIVE_UP)
        if self._welcome.done() and not self.over.done():
            # Whoever hangs up while more comes in may take back what he has just sent: first hear that it was read.
            self.client.unsubscribe(f"{self.given.client}/nothing")
            await asyncio.wait({self._heard}, timeout=_GIVE_UP)
        self.client.disconnect()
        await asyncio.to_thread(self.client.loop_stop)

    # In paho's thread.

    def _on_connect(self, client: Client, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        if code.is_failure:
            self._tell(self._refused, f"the broker refuses: {code}")
        else:
            client.subscribe(self.given.topic, qos=1)

    def _on_subscribe(self, _client: Client, _data: Any, _mid: int, codes: Any, _properties: Any) -> None:
        bad = [code for code in codes if code.is_failure]
        if bad:
            self._tell(self._refused, f"the broker refuses the topic {self.given.topic}: {bad[0]}")
        else:
            self._tell(self._welcomed)

    def _on_disconnect(self, _client: Client, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        self._tell(self._refused, f"the broker has hung up: {code}")

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        self._room.take(_size(message))
        self._tell(self._arrived, message)

    def _tell(self, call: Callable[..., None], *arguments: Any) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(call, *arguments)

    # On the event loop.

    def _welcomed(self) -> None:
        _done(self._welcome)
        self.seen.answers()

    def _refused(self, reason: str) -> None:
        _done(self._heard)
        for waited in (self._welcome, self.over):
            if not waited.done():
                waited.set_exception(ConnectionError(reason))
                waited.exception()  # it may be told twice, or to no one

    def _arrived(self, message: MQTTMessage) -> None:
        self._arrivals.append(message)
        self._take()

    def _take(self) -> None:
        """Hand in what has come, in order, as far as there are intakes for it."""
        while self._arrivals and (self._leaving or self._handed_in(self._arrivals[0])):
            message = self._arrivals.popleft()
            if self._leaving:  # the broker gives it again
                self._room.give(_size(message))

    def _handed_in(self, message: MQTTMessage) -> bool:
        line = line_of(bytes(message.payload))
        if not line:
            self._room.give(_size(message))
            self.client.ack(message.mid, message.qos)
            return True
        try:
            intake = self.intake_of(message.topic)
        except SkypaneError as error:  # its folder cannot be written
            self._room.give(_size(message))
            self._over(error)
            return True
        if intake is None:
            return False
        intake.seen.again += message.dup
        written = intake.put(line)
        self._unwritten.add(written)
        written.add_done_callback(partial(self._written, message))
        return True

    def _written(self, message: MQTTMessage, written: Future[None]) -> None:
        self._unwritten.discard(written)
        self._room.give(_size(message))
        error = written.exception()
        if error is None:
            self.client.ack(message.mid, message.qos)
        else:
            self._over(error)
        # The writer of its log has ended, or has more to write, when this is called.
        self.loop.call_soon(self._take)

    def _over(self, error: BaseException) -> None:
        """End the session, with nothing acknowledged that is not written: the broker gives it again."""
        if not self.over.done():
            self.over.set_exception(error)


def _size(message: MQTTMessage) -> int:
    return len(message.payload) + _BESIDES


def _done(waited: Future[None]) -> None:
    if not waited.done():
        waited.set_result(None)
