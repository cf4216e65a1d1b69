"""The log that --log writes: a line of JSON for each record."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import logging, sys
from skypane.cli import log_format
log_format.begin(sys.argv[1])
log = logging.getLogger("skypane.runtime.x")
log.info("batch %d: %s", 3, sys.argv[2])
log.debug("not shown")
logging.getLogger("another").info("not shown")
logging.getLogger("another").warning("of another package")
try:
    raise ValueError("why")
except ValueError:
    log.exception("failed")
"""


def written(chosen: str, text: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, chosen, text]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()


@pytest.mark.parametrize("text", ["plain", 'a "quoted" one', "two\nlines", "\x1b[31mred", "Zürich \u2028 日本"])
def test_a_record_is_one_line_of_json(text: str):
    records: list[dict[str, Any]] = [json.loads(line) for line in written("json", text)]
    assert [record["level"] for record in records] == ["INFO", "WARNING", "ERROR"]
    assert records[0].keys() == {"time", "level", "logger", "message"}
    assert (records[0]["logger"], records[0]["message"]) == ("skypane.runtime.x", f"batch 3: {text}")
    assert records[0]["time"].endswith("+00:00")
    assert records[1]["logger"] == "another"
    assert "ValueError: why" in records[2]["error"]
    assert "Traceback" in records[2]["error"]


def test_as_text_it_has_time_level_and_logger():
    first, *_ = written("text", "done")
    assert first.endswith("INFO skypane.runtime.x: batch 3: done")
