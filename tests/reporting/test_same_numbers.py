"""All that shows the rows of a stream shows the same numbers, those of the definition: each row read is counted once, in one place."""

from __future__ import annotations

import io
import logging
import re
from functools import reduce
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console
from tests.engine import jobs
from tests.opentelemetry import collected
from tests.prometheus import scraped
from tests.runtime.streams import SECOND, ended, late_rows, write_batches

import skypane as sp
from skypane.opentelemetry.instruments import instruments_of
from skypane.plan import Plan
from skypane.prometheus.exporter import Exporter
from skypane.reporting.live import PlainDisplay, panel
from skypane.reporting.query_view import QueryView
from skypane.reporting.report import lines, render
from skypane.reporting.snapshot import Snapshot
from skypane.reporting.watching import view_from
from skypane.runtime import local
from skypane.runtime.spark.committed_batches import CommittedBatches
from skypane.shared_plan import SharedPlan
from skypane.testing import Session
from skypane.windows import Windows

PLACES = ("read", "answered", "late", "quarantined", "held", "open")
ACCOUNT = re.compile(r"(?:(best|load)\W+)?([\d,]+) read: " + ", ".join(rf"([\d,]+) {place}" for place in PLACES[1:]))
PROGRESS = sp.AqKSlack(max_drop=0.2)

DIFFERENT = {
    "best": (sp.Skyline("price MIN, rating MAX"), Windows(50 * SECOND, 20 * SECOND)),
    "load": (sp.Aggregate("sensor", n=sp.count()), Windows(4 * SECOND, 4 * SECOND)),
}
EQUAL = {name: (query, Windows(4 * SECOND, 4 * SECOND)) for name, (query, _) in DIFFERENT.items()} | {
    "best": (sp.Aggregate("sensor", low=sp.min("weight")), Windows(4 * SECOND, 4 * SECOND))
}
ALONE = {"best": DIFFERENT["best"]}

Asked = dict[str, tuple[Any, Windows]]
Accounts = dict[str, dict[str, int]]
"""Numbers of rows by place, by query; under "" if they are the same for all."""


def batches() -> list[pa.Table]:
    """Rows that are late, some without a time or a price, and one far ahead of all others."""
    found = []
    for number, table in enumerate(late_rows(7, batches=9, rows=60)):
        times, prices = table["ts"].to_pylist(), table["price"].to_pylist()
        times[number], prices[number + 3] = None, None
        if number == 6:
            times[30] = times[31].replace(year=2031)
        timed = table.set_column(1, "ts", pa.array(times, table.schema.field("ts").type))
        found.append(timed.set_column(3, "price", pa.array(prices, pa.float64())))
    return found


def job_of(session: Session, folder: Path, asked: Asked, schema: pa.Schema) -> sp.Job:
    queries: Any = {name: query for name, (query, _) in asked.items()}
    windows: Any = {name: windows for name, (_, windows) in asked.items()}
    if len(asked) == 1:
        (queries,), (windows,) = queries.values(), windows.values()
    return jobs.job_of(session, folder, queries, schema, window=windows, progress=PROGRESS, late=folder / "late")


def defined(asked: Asked, events: list[local.Event]) -> Accounts:
    """Return the account of each query alone, by its definition."""
    plan = SharedPlan({name: Plan(query, windows, "ts", PROGRESS) for name, (query, windows) in asked.items()})
    *_, last = local.run_shared(plan, events)
    return shown_once({name: outcome.totals.to_json() for name, outcome in last.items()})


def shown_once(accounts: Accounts) -> Accounts:
    first, *others = accounts.values()
    return {"": first} if all(other == first for other in others) else accounts


def accounts_in(text: str) -> Accounts:
    """Return the last account of each query in a text."""
    words = re.sub(r"</?t[dhr][^>]*>|[\s│]+", " ", text)
    return {
        name: dict(zip(PLACES, (int(rows.replace(",", "")) for rows in numbers), strict=True))
        for name, *numbers in ACCOUNT.findall(words)
    }


def snapshot_of(seen: list[sp.BatchMetrics], asked: Asked) -> Snapshot:
    """Return the data of a report, as a job file with these queries gives it."""
    whole = Snapshot("offers", "Which?", 0, (), tuple(seen))
    if len(asked) == 1:
        return whole
    each = tuple(Snapshot(name, "Which?", 0, (), tuple(one.of(name) for one in seen)) for name in asked)
    return Snapshot("offers", "Which?", 0, (), tuple(seen), queries=each)


def of_lines(snapshot: Snapshot) -> Accounts:
    """Return the accounts that the last lines on a terminal state; the number of answered rows is what is left."""
    first, *rest = lines(snapshot)
    read = number(r"^([\d,]+) rows in ", first)
    names = {one.title for one in snapshot.queries}
    texts = {name: text for text in rest if (name := text.partition(": ")[0]) in names} or {"": "; ".join(rest)}
    found = {}
    for name, text in texts.items():
        places = {
            "late": number(r"\(([\d,]+) dropped", text),
            "quarantined": number(r"([\d,]+) rows? quarantined", text),
            "held": number(r"([\d,]+) rows? held", text),
            "open": number(r"([\d,]+) rows? in windows that are still open", text),
        }
        found[name] = {"read": read, "answered": read - sum(places.values()), **places}
    return shown_once(found)


def number(pattern: str, text: str) -> int:
    """Return the sum of the numbers that a pattern finds."""
    return sum(int(found.replace(",", "")) for found in re.findall(pattern, text))


@pytest.mark.long
@pytest.mark.parametrize("asked", [DIFFERENT, EQUAL, ALONE], ids=["different", "equal", "alone"])
@pytest.mark.parametrize("drained", [False, True])
def test_all_displays_show_the_same_rows(
    session: Session, tmp_path: Path, caplog: pytest.LogCaptureFixture, asked: Asked, drained: bool
):
    """Over a restart: all numbers go on from those of the first start."""
    tables = batches()
    seen: list[sp.BatchMetrics] = []
    caplog.set_level(logging.INFO, "skypane")
    for first in (0, 5):
        write_batches(tmp_path / "in", tables[first : first + 5], first=first)
        handle = ended(job_of(session, tmp_path, asked, tables[0].schema), on_batch=seen.append)
    if drained:
        assert handle.drain() is not None
    wanted = defined(asked, [*tables, local.Drain()] if drained else tables)

    last = seen[-1]
    own = {name: one.totals for name, one in last.queries.items()} or {"": last.totals}
    assert shown_once(own) == wanted
    for totals in (*wanted.values(), last.totals):
        assert totals["read"] == sum(totals[place] for place in PLACES[1:]) == sum(table.num_rows for table in tables)
        assert totals["late"], "the case needs late rows"
    assert last.totals in wanted.values()
    assert sum(one.late_rows for one in seen) == last.totals["late"]
    assert sum(sum(one.quarantined.values()) for one in seen) == last.totals["quarantined"]
    assert last.held_rows == last.totals["held"] == (0 if drained else 1)

    assert accounts_in("\n".join(record.getMessage() for record in caplog.records)) == wanted
    assert accounts_in(repr(handle)) == accounts_in(handle._repr_html_()) == wanted
    assert handle.recent_metrics(1) == [last]

    plain: list[str] = []
    with PlainDisplay(QueryView("offers"), plain.append, now=iter(range(0, 9_000, 9)).__next__) as display:
        for metrics in seen:
            display.batch(metrics)
    console = Console(file=io.StringIO(), width=200)
    watched = view_from("offers", CommittedBatches(str(tmp_path / "checkpoint")).new())
    console.print(panel(watched, 1.0))
    assert accounts_in(plain[-1]) == accounts_in(console.file.getvalue()) == wanted  # type: ignore[attr-defined]
    assert watched.read == reduce(QueryView.after, seen, QueryView("offers")).read == last.totals["read"]

    snapshot = snapshot_of(seen, asked)
    page = unescape(render(snapshot))
    rows = re.findall(r"rows since the first driver start(?: \((\w+)\))?</th><td>(.*?)</td>", page)
    assert {name: accounts_in(text)[""] for name, text in rows} == wanted
    assert of_lines(snapshot) == wanted

    exporter = Exporter()
    provider, reader = collected.provider_and_reader()
    instruments = instruments_of(provider)
    for metrics in seen:
        exporter.streams.add("s", metrics)
        instruments.streams.add("s", metrics)
    text = scraped.text_of(exporter)
    of_prometheus, of_opentelemetry = (
        shown_once(
            {query: {place: int(value(stream="s", query=query, place=place)) for place in PLACES} for query in own}
        )
        for value in (
            lambda **labels: scraped.value(text, "skypane_account_rows", **labels),
            lambda **labels: collected.value(reader, "skypane.account_rows", **labels),
        )
    )
    assert of_prometheus == of_opentelemetry == wanted
    for query, totals in own.items():
        assert scraped.total(text, "skypane_late_rows_total", query=query) == totals["late"]
        assert scraped.total(text, "skypane_quarantined_rows_total", query=query) == totals["quarantined"]
    assert scraped.total(text, "skypane_rows_total") == last.totals["read"]

    texts = [str(metrics) for metrics in seen]
    assert sum(number(r": ([\d,]+) rows?(?! quarantined)\b", text) for text in texts) == last.totals["read"]
    for name, totals in own.items():
        late = sum(number(rf"([\d,]+) late rows?(?: of {name})?(?![\w ])", text) for text in texts)
        assert late == totals["late"], texts


def test_no_share_of_rows_is_larger_than_the_rows(session: Session, tmp_path: Path):
    """Rows that are late for each of several queries are not added up, and the budget is that of each query."""
    tables = batches()
    write_batches(tmp_path / "in", tables)
    (last,) = ended(job_of(session, tmp_path, DIFFERENT, tables[0].schema)).recent_metrics(1)
    shares = last.of_each(lambda one: one.drop_ratio)
    assert list(shares) == list(DIFFERENT)
    assert all(0 < share < 1 for share in shares.values())
    assert last.over_budget is any(share > 0.2 for share in shares.values())
