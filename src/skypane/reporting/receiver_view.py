"""Display of a receiver: a table that refreshes on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from skypane.reporting.live import plain
from skypane.runtime.receiving.input_list import Connect, Http, Listen, Mqtt, Received, ReceivedInputs
from skypane.runtime.receiving.merge_commit import MERGED
from skypane.runtime.receiving.receiver import Receiver
from skypane.runtime.receiving.receiver_status import ReceivedInput
from skypane.wording import clock, count, counted, seconds

COLUMNS = ("input", "state", "lines", "lines/s", "bytes", "silent for", "remarks")
LINE_EVERY = 10.0
"""Minimum seconds between plain lines, so that a log is not flooded."""


def settings(receipts: ReceivedInputs) -> Iterator[tuple[str, str]]:
    """Yield (name, value) pairs that describe the inputs, without secrets."""
    yield "folder", receipts.folder
    for one in receipts.inputs:
        yield one.name, _source(one)
    if (order := receipts.merge) is not None:
        waits = f"a line waits for silent inputs for {seconds(order.wait)}"
        yield MERGED, f"all inputs in the order of {order.time}; {waits}"
    yield "kept", f"until read by {', '.join(receipts.read_by)}" if receipts.read_by else "forever"


def _source(one: Received) -> str:
    match one:
        case Listen():
            acknowledged = ", acknowledged" if one.acknowledge else ""
            reached = ", open to any client" if one.is_open else ""
            return f"lines that clients send to {one.listen}{_encrypted(one)}{acknowledged}{reached}"
        case Connect():
            return f"lines that {one.connect} sends{_encrypted(one)}"
        case Mqtt():
            return f"messages of {one.topic} from {one.mqtt}, as client {one.client}{_by_topic(one)}"
        case Http():
            # the query part of the address may contain a key
            every = seconds(int(one.every) / 1e6)  # type: ignore[arg-type]
            return f"answers of {one.http.partition('?')[0]}, requested every {every}"


def _encrypted(one: Listen | Connect) -> str:
    return ", encrypted" if one.tls else ""


def _by_topic(one: Mqtt) -> str:
    return ", one input per topic" if one.by_topic else ""


def rows(seen: Sequence[ReceivedInput], rates: dict[str, float]) -> list[tuple[str, ...]]:
    """Return the table's cells, one row for each input; `rates` are lines per second by input."""
    return [
        (
            one.name,
            one.state,
            count(one.lines),
            count(round(rates.get(one.name, 0.0))),
            count(one.received),
            "" if one.silent is None else seconds(round(one.silent, 1)),
            _remarks(one),
        )
        for one in seen
    ]


def _remarks(one: ReceivedInput) -> str:
    remarks = [one.reason] if one.reason else []
    remarks += [counted(one.unfinished, "lines without an end")] if one.unfinished else []
    remarks += [f"{count(one.again)} sent again"] if one.again else []
    return "; ".join(remarks)


class ReceiverView:
    """A view of a receiver; rates are measured between two calls of look()."""

    def __init__(self, receiving: Receiver, console: Console) -> None:
        self._receiving = receiving
        self._console = console
        self._since = self._looked = time.monotonic()
        self._printed = -LINE_EVERY
        self._before: dict[str, int] = {}
        self._rates: dict[str, float] = {}
        self._live = (
            Live(console=console, get_renderable=self.table, refresh_per_second=2) if console.is_terminal else None
        )

    def look(self) -> None:
        """Update the rates, and print a line if LINE_EVERY seconds have passed."""
        now = time.monotonic()
        passed, self._looked = now - self._looked, now
        for one in self._receiving.seen:
            self._rates[one.name] = (one.lines - self._before.get(one.name, 0)) / passed if passed > 0 else 0.0
            self._before[one.name] = one.lines
        if self._live is None and now - self._since - self._printed >= LINE_EVERY:
            self._printed = now - self._since
            self._console.print(self.line(), soft_wrap=True)

    def ended(self) -> None:
        """Print the last line, after everything has been written."""
        self._console.print(f"stopped; {self.line()}", soft_wrap=True)

    def _merge(self) -> list[str]:
        """Return the status of the merge, in words."""
        merged = self._receiving.merged
        if merged is None:
            return []
        waits = f", waiting for {merged.waits_for}" if merged.waits_for else ""
        words = [f"{count(merged.lines)} lines merged by time, {count(merged.waiting)} wait{waits}"]
        rejected = [f"{name}: {count(number)} {reason}" for (name, reason), number in sorted(merged.rejected.items())]
        words += [f"rejected of {', '.join(rejected)}"] if rejected else []
        return words + ([merged.reason] if merged.reason else [])

    def line(self) -> str:
        """Return the status of all inputs as one line: lines received, rate and failures."""
        seen = self._receiving.seen
        failed = [f"{one.name}: {one.reason}" for one in seen if one.reason]
        elapsed, lines = clock(time.monotonic() - self._since), count(sum(one.lines for one in seen))
        parts = [
            f"[{elapsed}] {lines} lines of {len(seen)} inputs",
            f"{count(round(sum(self._rates.values())))} lines/s",
        ]
        return "; ".join(parts + self._merge() + failed)

    def table(self) -> Table:
        """Return the table for a terminal."""
        table = Table(*COLUMNS, box=None, header_style="dim", padding=(0, 2, 0, 0))
        for row in rows(self._receiving.seen, self._rates):
            table.add_row(*map(plain, row))
        if words := self._merge():
            table.caption, table.caption_justify = plain("; ".join(words)), "left"
        return table

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            self._live.stop()
