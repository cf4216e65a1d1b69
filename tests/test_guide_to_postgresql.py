"""The guide to a table of PostgreSQL that follows a front, from its own text, with a real server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.page_steps import differences
from tests.servers.postgresql import PASSWORD
from tests.test_guides import guide

if TYPE_CHECKING:
    from tests.servers.postgresql import Server


@pytest.mark.spark
@pytest.mark.slow
def test_the_table_has_the_offers_that_the_page_shows(
    postgresql: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    page = guide("how-to-postgresql").replace("postgresql://db.example:5432/shop", postgresql.url)
    assert not differences(page, tmp_path)
