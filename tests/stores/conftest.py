"""Object stores for the tests of this folder: in memory, or of a real server behind a proxy that spoils requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.servers import fault_proxy, s3
from tests.servers.fault_proxy import FaultProxy
from tests.stores.memory import in_memory


@pytest.fixture
def memory() -> Iterator[None]:
    with in_memory():
        yield


@pytest.fixture(scope="module")
def proxy() -> Iterator[FaultProxy]:
    with s3.running() as port, fault_proxy.before(port) as (running, own), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_TIMEOUT", "2s")  # a client waits half a minute for one that is silent
        with s3.connected(own):
            yield running
