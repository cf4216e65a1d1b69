"""The log that --log writes: a line of JSON for each record."""

from __future__ import annotations

import json
import subprocess
import sys

TEXTS = ("plain", 'a "quoted" one', "two\nlines", "\x1b[31mred", "Zürich \u2028 日本")
PROGRAM = """
import logging, sys
from skypane.cli import log_format
log_format.begin(sys.argv[1])
log = logging.getLogger("skypane.runtime.x")
for text in sys.argv[2:]:
    log.info("batch %d: %s", 3, text)
log.debug("not shown")
logging.getLogger("another").info("not shown")
logging.getLogger("another").warning("of another package")
try:
    raise ValueError("why")
except ValueError:
    log.exception("failed")
"""


def written(chosen: str, *texts: str) -> list[str]:
    command = [sys.executable, "-c", PROGRAM, chosen, *texts]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()


def test_a_record_is_one_line_of_json():
    *batches, another, error = (json.loads(line) for line in written("json", *TEXTS))
    assert [(record["logger"], record["message"]) for record in batches] == [
        ("skypane.runtime.x", f"batch 3: {text}") for text in TEXTS
    ]
    for record in batches:
        assert record.keys() == {"time", "level", "logger", "message"}
        assert record["level"] == "INFO"
        assert record["time"].endswith("+00:00")
    assert (another["level"], another["logger"]) == ("WARNING", "another")
    assert error["level"] == "ERROR"
    assert "ValueError: why" in error["error"]
    assert "Traceback" in error["error"]


def test_as_text_it_has_time_level_and_logger():
    first, *_ = written("text", "done")
    assert first.endswith("INFO skypane.runtime.x: batch 3: done")


def test_text_has_controls_as_escapes():
    log = "\n".join(written("text", *TEXTS))
    assert "batch 3: \\x1b[31mred" in log
    assert "\x1b" not in log
    assert "batch 3: Zürich" in log
