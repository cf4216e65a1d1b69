"""The option --log: the log of skypane on the standard error, as lines of text or of JSON."""

from __future__ import annotations

import json
import logging
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

from skypane.naming import printable

LogFormat: TypeAlias = Literal["text", "json"]

_TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class TextLines(logging.Formatter):
    """Writes a record as text, with control characters as escapes: messages have names and reasons of others."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON: time (UTC), level, logger and message, and the traceback of an error."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)  # in ASCII: no character in it ends a line, in any encoding


def add_option(parser: ArgumentParser) -> None:
    """Add --log."""
    parser.add_argument(
        "--log",
        choices=["text", "json"],
        help="write the log of skypane to the standard error, one line for each batch, as text or as JSON; by default "
        "it has warnings and errors only",
    )


def begin(chosen: LogFormat | None) -> None:
    """Write the log of skypane from INFO on, and of other packages from WARNING on; None leaves logging as it is."""
    if chosen is None:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if chosen == "json" else TextLines(_TEXT))
    logging.basicConfig(handlers=[handler])
    logging.getLogger("skypane").setLevel(logging.INFO)
