"""The backlog of a query as far as its sources know it, by their last report to Spark's query progress.

many inputs   the lag of each input                            sources/many/input_metrics.py
replay        the rows of the recording: {"row": 20}           sources/replay.py
Kafka         the newest offsets: {"topic": {"0": 20}}
others        nothing: sources of files and sockets report no newest offset, and that of others may have any form
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from skypane.runtime.spark.sources.many.input_metrics import from_json
from skypane.wording import counted

_UNITS = {"row": "rows", "tables": "tables"}
"""The units of offsets that are one number."""
_NAMED = 5


def known_backlog(query: StreamingQuery) -> str:
    """Return in words the backlog that was left when the last batch of a query was planned; "" if none is known."""
    progress = query.lastProgress
    return "" if progress is None else " and ".join(filter(None, map(_of_source, progress["sources"])))


def unended_lines(query: StreamingQuery) -> str:
    """Return in words the last lines and members of inputs that have not ended, so that no batch has them; "" if there are none."""
    progress = query.lastProgress
    sources = () if progress is None else progress["sources"]
    reports = (from_json(value_of(source.get("latestOffset"))) for source in sources)
    named = [
        f"{one.input} ({one.unended:,} bytes)" for report in reports if report for one in report.inputs if one.unended
    ]
    return ", ".join(named[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")


def value_of(offset: Any) -> Any:
    """Return an offset of Spark's query progress, which may be the text of a JSON object, as a value."""
    return json.loads(offset) if isinstance(offset, str) and offset.startswith("{") else offset


def _of_source(source: Any) -> str:
    newest, end = value_of(source.get("latestOffset")), value_of(source.get("endOffset"))
    report = from_json(newest)
    if report is not None:
        behind = [one for one in report.inputs if one.state == "behind"]
        return f"{counted(max(1, report.backlog), 'rows')} of {counted(len(behind), 'inputs')}" if behind else ""
    if newest is None and isinstance(end, dict) and end.get("more"):  # a batch that was planned by an earlier start
        return "rows of inputs"
    if not (isinstance(newest, dict) and isinstance(end, dict)):
        return ""
    if source["description"].startswith("Kafka"):
        left = [at - end.get(topic, {}).get(part, at) for topic, parts in newest.items() for part, at in parts.items()]
        behind_by = [messages for messages in left if messages > 0]
        return f"{counted(sum(behind_by), 'messages')} of {counted(len(behind_by), 'partitions')}" if behind_by else ""
    unit = next((unit for unit in _UNITS if newest.keys() == end.keys() == {unit}), None)
    return "" if unit is None or newest[unit] <= end[unit] else counted(newest[unit] - end[unit], _UNITS[unit])
