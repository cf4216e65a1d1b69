"""The how-to guides and tutorials of docs, from their own text: each block is run in order, and prints what the page shows below it.

Those with a broker or a database have real ones. One of them is typed as by a stranger, the others by readers.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.checkout import ROOT
from tests.page_steps import GUIDES, TUTORIALS, differences, files, programs
from tests.readers import Readers
from tests.servers import postgresql as database

from skypane.jobs import parse

if TYPE_CHECKING:
    from tests.servers.kafka import Broker
    from tests.servers.postgresql import Server

pytestmark = pytest.mark.pages

DOCS = ROOT / "docs"
OF_A_STRANGER = "how-to-wrong-clocks"
WITHOUT_SERVERS = (
    "how-to-progress-policy",
    "how-to-test-a-job",
    "how-to-size-a-cluster",
    "how-to-files",
    "how-to-spark-windows",
    "how-to-rejected-rows",
    "how-to-checkpoint",
    "how-to-slow-stream",
    "how-to-elastic",
)
WITH_SERVERS = ("how-to-kafka", "how-to-delta", "how-to-postgresql")
IN_OTHER_FILES = ("how-to-receive", "how-to-object-store")
"""Those whose tests are in tests/test_guide_to_*.py: they start what a stranger does."""
_CREATED = re.compile(r"--create --topic (\S+) --partitions (\d+)")
_MESSAGE = re.compile(r"^    (\{.*\})$", re.MULTILINE)

Typed = Callable[[str], list[str]]
"""Has a page typed by a reader, and returns the differences from what it shows."""


def guide(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Readers]:
    there = Readers(tmp_path_factory.mktemp("readers"))
    yield there
    there.close()


@pytest.fixture
def typed(readers: Readers) -> Iterator[Typed]:
    yield lambda page: differences(page, readers.folder, readers.typed)
    readers.leave()


@pytest.mark.parametrize("name", WITHOUT_SERVERS)
def test_each_block_of_a_guide_prints_what_the_page_shows(name: str, typed: Typed):
    assert not typed(guide(name))


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_each_block_of_a_tutorial_prints_what_the_page_shows(page: Path, typed: Typed):
    assert not typed(page.read_text(encoding="utf-8"))


def test_each_block_of_a_guide_prints_it_for_a_stranger_too(tmp_path: Path):
    assert not differences(guide(OF_A_STRANGER), tmp_path)


def test_each_guide_and_tutorial_is_run():
    assert [page.stem for page in TUTORIALS] == ["tutorial-budget", "tutorial-first-stream"]
    assert sorted(page.stem for page in GUIDES) == sorted(
        [*WITHOUT_SERVERS, OF_A_STRANGER, *WITH_SERVERS, *IN_OTHER_FILES]
    )


def test_a_guide_has_one_program():
    more = {"how-to-rejected-rows": 2}  # rows that were late come back in another way than lines that do not parse
    assert {page.stem: len(programs(page.read_text(encoding="utf-8"))) for page in GUIDES} == {
        page.stem: more.get(page.stem, 1) for page in GUIDES
    }


def test_each_job_file_of_a_page_is_a_valid_one():
    for page in (*GUIDES, *TUTORIALS):
        for name, body in files(page.read_text(encoding="utf-8")).items():
            if name.endswith(".yaml") and name != "inputs.yaml":  # which is for `skypane receive`
                assert parse(body, f"{name} of {page.stem}").name


@pytest.mark.parametrize(("name", "topic"), [("how-to-kafka", "sales"), ("how-to-delta", "orders")])
def test_answers_and_rejected_rows_of_a_topic_are_where_the_page_shows_them(
    kafka: Broker, typed: Typed, name: str, topic: str
):
    page = guide(name).replace("broker-1:9092", kafka.address)
    for created, partitions in _CREATED.findall(page):
        kafka.create(created, int(partitions))
    kafka.send(topic, [message.encode() for message in _MESSAGE.findall(page)])
    assert not typed(page)


def test_the_table_has_the_offers_that_the_page_shows(
    postgresql: Server, typed: Typed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SHOP_PASSWORD", database.PASSWORD)
    assert not typed(guide("how-to-postgresql").replace("postgresql://db.example:5432/shop", postgresql.url))
