"""The tutorials of docs, from their own text: each block is run in order, as by a stranger, and prints what it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.page_steps import TUTORIALS, differences, files

from skypane.jobs import parse

pytestmark = pytest.mark.pages


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_each_block_of_a_tutorial_prints_what_the_page_shows(page: Path, tmp_path: Path):
    assert not differences(page.read_text(encoding="utf-8"), tmp_path)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_each_job_file_of_a_tutorial_is_a_valid_one(page: Path):
    for name, body in files(page.read_text(encoding="utf-8")).items():
        assert parse(body, name).name


def test_both_tutorials_are_run():
    assert [page.name for page in TUTORIALS] == ["tutorial-budget.md", "tutorial-first-stream.md"]
