"""What several tests of receivers need."""

from __future__ import annotations

import pytest
from tests.servers.ports import free_ports


@pytest.fixture
def port() -> int:
    """A port of this machine that nobody listens at."""
    (port,) = free_ports(1)
    return port


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let receivers try again soon."""
    monkeypatch.setattr("skypane.runtime.receiving.receiver.FIRST_WAIT", 0.05)
    monkeypatch.setattr("skypane.runtime.receiving.receiver.LONGEST_WAIT", 0.2)
