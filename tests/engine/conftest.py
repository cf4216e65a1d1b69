"""A session without Java for the tests of the engine: tests/engine/test_same_on_spark.py compares it with Spark."""

from __future__ import annotations

import pytest

from skypane.testing import Session


@pytest.fixture
def session() -> Session:
    return Session()
