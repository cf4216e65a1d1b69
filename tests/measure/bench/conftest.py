"""What benchmarks of programs of others need."""

from __future__ import annotations

import pytest
from measure.peers import windflow
from measure.peers.places import MissingError


@pytest.fixture
def windflow_headers() -> None:
    """Skip a test where WindFlow is not, or nothing that compiles it."""
    try:
        windflow.headers()
    except MissingError as error:
        pytest.skip(str(error))
