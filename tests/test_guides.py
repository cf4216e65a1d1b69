"""The how-to guides of docs, from their own text: each block is run in order, and prints what the page shows below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checkout import ROOT
from tests.page_steps import differences, files, programs

from skypane.jobs import parse

DOCS = ROOT / "docs"
GUIDES = sorted(DOCS.glob("how-to-*.md"))
WITHOUT_SPARK = ("how-to-progress-policy", "how-to-test-a-job", "how-to-size-a-cluster")
ON_SPARK = (
    "how-to-files",
    "how-to-spark-windows",
    "how-to-rejected-rows",
    "how-to-wrong-clocks",
    "how-to-checkpoint",
    "how-to-slow-stream",
    "how-to-elastic",
)
WITH_SERVERS = ("how-to-receive", "how-to-kafka", "how-to-delta", "how-to-postgresql", "how-to-object-store")
"""Those whose tests are in files of their own: tests/test_guide_to_*.py."""


def guide(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_each_block_of_a_guide_without_spark_prints_what_the_page_shows(name: str, tmp_path: Path):
    assert not differences(guide(name), tmp_path)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("name", ON_SPARK)
def test_each_block_of_a_guide_on_spark_prints_what_the_page_shows(name: str, tmp_path: Path):
    assert not differences(guide(name), tmp_path)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_has_one_program(page: Path):
    assert len(programs(page.read_text(encoding="utf-8"))) == 1


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_each_job_file_of_a_guide_is_a_valid_one(page: Path):
    for name, body in files(page.read_text(encoding="utf-8")).items():
        if name.endswith(".yaml") and name != "inputs.yaml":  # which is for `skypane receive`
            assert parse(body, name).name


def test_each_guide_is_run():
    assert {page.stem for page in GUIDES} == {*WITHOUT_SPARK, *ON_SPARK, *WITH_SERVERS}
