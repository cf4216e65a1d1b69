"""A server of S3's API for tests, in a process of its own, and the environment in which clients find it."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import pytest

from skypane.runtime.stores import object_client

BUCKET: Final = "bucket"


def environment(port: int) -> dict[str, str]:
    """Return the variables by which clients find a server on this machine."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "unheard-of",
        "AWS_REGION": "us-east-1",
    }


@contextmanager
def running() -> Iterator[int]:
    """Run a server with an empty bucket; yield its port."""
    program = Path(__file__).with_name("s3_process.py")
    quiet = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=quiet
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            make_bucket(port, BUCKET)
            yield port
        finally:
            process.kill()


def empty(port: int) -> None:
    """Let a server that runs be as at its start."""
    _request(port, "POST", "/moto-api/reset")
    make_bucket(port, BUCKET)


def make_bucket(port: int, name: str) -> None:
    _request(port, "PUT", f"/{name}")


def put(port: int, key: str, content: bytes) -> None:
    """Write an object that is not there, of any name: clients do not take all."""
    _request(port, "PUT", f"/{BUCKET}/{quote(key)}", content)


def _request(port: int, method: str, path: str, content: bytes = b"") -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, content)
    assert connection.getresponse().status == 200
    connection.close()


@contextmanager
def connected(port: int) -> Iterator[None]:
    """Let this process, and those that it starts, find the server at `port`."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(port).items():
            patch.setenv(name, value)
        object_client._connected.cache_clear()
        yield
    object_client._connected.cache_clear()
