"""The address of a server of Spark Connect, whether anything answers there, and whether a client can be had here.

PySpark's client repeats a call to a server that does not answer for ten minutes; a wrong address should be an error at
once.
"""

from __future__ import annotations

import os
import socket
from importlib import import_module
from typing import Final
from urllib.parse import urlsplit

from skypane.types import ConfigError

REMOTE: Final = "SPARK_REMOTE"
"""The environment variable in which PySpark looks for the address of a server."""

_PORT: Final = 15_002
_PATIENCE: Final = 10.0
"""Seconds within which a server must accept a connection."""
_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy")
"""Environment variables by which gRPC finds a proxy, behind which this process may not reach the server itself."""


def check_client() -> None:
    """Raise ConfigError if what a client needs beside PySpark is not installed."""
    try:
        import_module("grpc")
    except ImportError as error:
        raise ConfigError(
            "a client of Spark Connect needs gRPC, which is not installed: pip install 'skypane[connect]'"
        ) from error


def check_reachable(remote: str) -> None:
    """Raise ConfigError if nothing accepts a connection at "sc://host:port/;token=..."; behind a proxy it is not tried.

    The message has host and port only: the rest may hold a token.
    """
    host, port = host_and_port(remote)
    if any(os.environ.get(name) for name in _PROXIES):
        return
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        raise ConfigError(
            f"no Spark Connect server answers at {host}:{port} ({error.strerror or error}): start it, or correct the address"
        ) from error


def host_and_port(remote: str) -> tuple[str, int]:
    """Return where the server is; raise ConfigError for what cannot be an address of one.

    >>> host_and_port("sc://spark.example/;use_ssl=true"), host_and_port("sc://[::1]:7077")
    (('spark.example', 15002), ('::1', 7077))
    """
    try:
        parts = urlsplit(remote)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not remote.startswith("sc://") or host is None:
        raise ConfigError(
            'the address of a Spark Connect server must be "sc://host:port", such as "sc://localhost:15002"'
        )
    return host, port or _PORT
