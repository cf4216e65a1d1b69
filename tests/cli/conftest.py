"""What tests of several commands start from."""

from __future__ import annotations

import pytest


@pytest.fixture
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns for a whole row of a table."""
    monkeypatch.setenv("COLUMNS", "200")
