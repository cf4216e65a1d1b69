"""Receive messages of an MQTT 5 broker; each is acknowledged only when it is on disk.

The broker keeps messages that arrive while no receiver runs, and messages without an acknowledgement, so the receiver
loses nothing. If it is killed, or loses its connection, between a sync and the acknowledgement, it receives those
messages again: they are in the log twice, and MQTT cannot distinguish them from other messages with the same text. A
clean stop acknowledges everything that is written, and causes no duplicates.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from skypane.runtime.background import in_background
from skypane.runtime.environment import held_line
from skypane.runtime.receiving.group_commit import GroupCommit, NamedTopic
from skypane.runtime.receiving.input_list import Mqtt
from skypane.runtime.receiving.message_lines import line_of
from skypane.runtime.receiving.receiver_status import ReceivedInput
from skypane.runtime.receiving.write_budget import WriteBudget
from skypane.types import ConfigError, SkypaneError, micros

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage

IN_FLIGHT = 1_000
"""Messages that a broker may send before the first of them is acknowledged."""

LARGEST = 16 << 20
"""The largest message with its topic, in bytes; the broker is requested to send no larger ones."""

_BEHIND = 32 << 20
"""Bytes of unwritten messages at which the connection is no longer read."""
_BESIDES = 200
"""Bytes of memory that a message takes besides its payload."""
_KEEPALIVE = 30
_GIVE_UP = 10.0
"""Seconds for the broker to accept a connection, and for the last acknowledgements to be sent."""


def check(given: Mqtt, environment: Mapping[str, str]) -> None:
    """Raise ConfigError if the client is not installed, or an environment variable is not set."""
    try:
        import paho.mqtt.client  # noqa: F401, PLC0415
    except ImportError as error:
        raise ConfigError("MQTT needs paho-mqtt, which is not installed: pip install 'skypane[mqtt]'") from error
    _login(given, environment)


def _login(given: Mqtt, environment: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return user and password; raise ConfigError for an environment variable that is not set."""
    user = None if given.user is None else held_line(given.user, "user", environment)
    return user, None if given.password is None else held_line(given.password, "password", environment)


async def subscribe(
    given: Mqtt,
    seen: ReceivedInput,
    intake_of: Callable[[str], GroupCommit | NamedTopic | None],
    environment: Mapping[str, str],
) -> None:
    """Receive until cancelled; raise OSError if the broker refuses or disconnects, or a message cannot be written.

    intake_of  returns the intake of a topic; None while too many other logs have lines to write
    """
    session = _Session(given, seen, intake_of, environment)
    try:
        await session.connected()
        await asyncio.wait({session.over})  # cancelling ends the wait, not the connection
        session.over.result()
    finally:
        await session.leave()


class _Session:
    """One connection on one event loop; paho runs its callbacks in its own thread."""

    def __init__(
        self,
        given: Mqtt,
        seen: ReceivedInput,
        intake_of: Callable[[str], GroupCommit | NamedTopic | None],
        environment: Mapping[str, str],
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
        #: received messages that wait for an intake
        self._arrivals: deque[MQTTMessage] = deque()
        self._room = WriteBudget(_BEHIND)
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
        client.on_unsubscribe = lambda *_: self._call(_done, self._heard)
        client.on_disconnect = self._on_disconnect
        client.on_message = self._on_message
        return client

    async def connected(self) -> None:
        """Connect and subscribe; raise ConnectionError, with the broker's reason, if it refuses."""
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
        """Take no more messages, acknowledge those that are written, and disconnect; the broker keeps the rest."""
        self._leaving = True
        self._take()
        if self._unwritten:
            await asyncio.wait(self._unwritten, timeout=_GIVE_UP)
        if self._welcome.done() and not self.over.done():
            # Closing while data arrives may reset the connection and lose the last acknowledgements: this request's
            # reply shows that the broker has read them.
            self.client.unsubscribe(f"{self.given.client}/nothing")
            await asyncio.wait({self._heard}, timeout=_GIVE_UP)
        self.client.disconnect()
        await asyncio.to_thread(self.client.loop_stop)

    # In paho's thread.

    def _on_connect(self, client: Client, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        if code.is_failure:
            self._call(self._refused, f"the broker refuses: {code}")
        else:
            from paho.mqtt.subscribeoptions import SubscribeOptions  # noqa: PLC0415 - an extra

            # Retained messages come once, when the broker does not know this subscription yet, not at each connection.
            retained = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
            client.subscribe(self.given.topic, options=SubscribeOptions(qos=1, retainHandling=retained))

    def _on_subscribe(self, _client: Client, _data: Any, _mid: int, codes: Any, _properties: Any) -> None:
        bad = [code for code in codes if code.is_failure]
        if bad:
            self._call(self._refused, f"the broker refuses the topic {self.given.topic}: {bad[0]}")
        else:
            self._call(self._welcomed)

    def _on_disconnect(self, _client: Client, _data: Any, _flags: Any, code: Any, _properties: Any) -> None:
        self._call(self._refused, f"the broker has disconnected: {code}")

    def _on_message(self, _client: Client, _data: Any, message: MQTTMessage) -> None:
        self._room.take(_size(message))
        self._call(self._arrived, message)

    def _call(self, call: Callable[..., None], *arguments: Any) -> None:
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
                waited.exception()  # marks it as retrieved: both futures, or none, may be awaited

    def _arrived(self, message: MQTTMessage) -> None:
        self._arrivals.append(message)
        self._take()

    def _take(self) -> None:
        """Hand in received messages, in order, until one has no intake."""
        while self._arrivals and (self._leaving or self._handed_in(self._arrivals[0])):
            message = self._arrivals.popleft()
            if self._leaving:  # the broker sends it again
                self._room.give(_size(message))

    def _handed_in(self, message: MQTTMessage) -> bool:
        line = line_of(bytes(message.payload))
        if not line:
            self._room.give(_size(message))
            self.client.ack(message.mid, message.qos)
            return True
        try:
            intake = self.intake_of(message.topic)
        except SkypaneError as error:  # the topic's log cannot be opened
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
        # Runs after the log's writer has ended or has taken more lines.
        self.loop.call_soon(self._take)

    def _over(self, error: BaseException) -> None:
        """End the session without acknowledging unwritten messages: the broker sends them again."""
        if not self.over.done():
            self.over.set_exception(error)


def _size(message: MQTTMessage) -> int:
    return len(message.payload) + _BESIDES


def _done(waited: Future[None]) -> None:
    if not waited.done():
        waited.set_result(None)
