"""The guide to objects that arrive in a bucket, from its own text, with a server of S3's API."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from tests.page_steps import differences
from tests.servers import s3
from tests.test_guides import guide

from skypane.locations import Location
from skypane.runtime.stores.object_client import client_of

pytestmark = pytest.mark.pages

_LINE = re.compile(r"^    (sales/\S+)  (.*)$", re.MULTILINE)


def test_the_rows_of_the_objects_are_answered_and_what_is_none_is_rejected(tmp_path: Path):
    page = guide("how-to-object-store")
    objects: dict[str, str] = {}
    for name, line in _LINE.findall(page):
        objects[name] = objects.get(name, "") + f"{line}\n"
    assert len(objects) == 3
    with s3.running() as port, s3.connected(port):
        s3.make_bucket(port, "shop-data")
        for name, text in objects.items():
            client_of(Location.of("s3://shop-data")).put(name, gzip.compress(text.encode()))
        assert not differences(page, tmp_path)
