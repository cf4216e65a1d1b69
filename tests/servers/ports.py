"""Free ports for the servers of tests and runs, several of which may look for ports at the same time."""

from __future__ import annotations

import random
import socket
from contextlib import suppress
from typing import Final

_UNASKED: Final = range(10_000, 32_768)
"""Ports that systems give to no outgoing connection: one that was free a moment ago still is."""


def free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody listens at now."""
    held = [_listening() for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _listening() -> socket.socket:
    """Return a socket at some port: any, so that no two who look at once are likely to find the same."""
    while True:
        with suppress(OSError):
            return socket.create_server(("127.0.0.1", random.SystemRandom().choice(_UNASKED)))
