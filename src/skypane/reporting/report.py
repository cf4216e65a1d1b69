"""One self-contained HTML page about one run: drawn from a frozen Snapshot, no script, nothing loaded from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template

import numpy as np
import pyarrow as pa

from skypane.metrics import BatchMetrics
from skypane.reporting import maps, plots
from skypane.reporting.grids import GridMap
from skypane.reporting.snapshot import Example, Snapshot
from skypane.reporting.summary import Summary, summarise
from skypane.types import ConfigError
from skypane.wording import UNKNOWN, count, counted, percent, seconds, span, stamp

#: rows of the example front that are listed
LISTED = 18


def render(snapshot: Snapshot) -> str:
    """Return the page; raise ConfigError if there was no batch to report on."""
    if not snapshot.batches:
        raise ConfigError(f"no batch of {snapshot.title!r} has been logged, there is nothing to report on yet")
    summary = summarise(snapshot)
    page = Template(resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(snapshot.title),
        question=escape(snapshot.question),
        when=escape(_when(snapshot, summary)),
        tiles="\n".join(_tiles(snapshot, summary)),
        cards="\n".join(_cards(snapshot, summary)),
        footer=escape("Written by skypane. Times are event time unless wall clock is said."),
    )


def lines(snapshot: Snapshot) -> list[str]:
    """Return the outcome of a run in a few lines of plain text."""
    s = summarise(snapshot)
    budget = f" of {percent(s.drop_budget)} allowed" if s.drop_budget is not None else ""
    rate = f"{count(round(s.rate))} rows/s in {counted(s.batches, 'micro-batches')}"
    outcome = [
        f"{counted(s.rows, 'rows')} in {seconds(s.seconds)}: {rate}",
        f"{counted(s.windows, 'windows answered')} with {counted(s.window_rows, 'rows')}",
        f"{percent(s.drop_ratio)} of the rows came too late{budget} ({count(s.late)} dropped)",
    ]
    outcome += [f"{counted(n, 'rows put aside')}: {reason}" for reason, n in sorted(s.quarantined.items())]
    return outcome


def _when(snapshot: Snapshot, summary: Summary) -> str:
    began = datetime.fromtimestamp(snapshot.batches[0].started_at, UTC)
    return f"{began:%Y-%m-%d %H:%M} UTC, {seconds(summary.seconds)} of running, {counted(summary.batches, 'micro-batches')}"


def _tiles(snapshot: Snapshot, summary: Summary) -> Iterable[str]:
    quarantined = sum(summary.quarantined.values())
    yield _tile("rows read", count(summary.rows), f"{count(quarantined)} of them put aside, unusable")
    yield _tile("rate", f"{count(round(summary.rate))} rows/s", "sustained, waiting included")
    per = f"{summary.window_rows / summary.windows:.1f} rows each" if summary.windows else "none closed yet"
    yield _tile("windows answered", count(summary.windows), per)
    budget = f"budget {percent(summary.drop_budget)}" if summary.drop_budget is not None else "no budget was set"
    yield _tile(
        "came too late",
        percent(summary.drop_ratio),
        f"{counted(summary.late, 'rows dropped')}; {budget}",
        bad=not summary.within_budget,
    )
    if len(summary.times.lag):
        lag = float(np.median(summary.times.lag))
        time = f"{seconds(lag * snapshot.speedup)} of the stream's time" if snapshot.speedup else "wall clock"
        yield _tile("answer after a window's end", seconds(lag), f"median; {time}")


def _tile(name: str, value: str, remark: str, *, bad: bool = False) -> str:
    kind = "tile bad" if bad else "tile"
    return f'<div class="{kind}"><span>{escape(name)}</span><b>{escape(value)}</b><small>{escape(remark)}</small></div>'


def _cards(snapshot: Snapshot, summary: Summary) -> Iterable[str]:
    if snapshot.grid is not None:
        yield _map_card(snapshot.grid)
    if snapshot.example is not None and len(snapshot.criteria) > 1:
        yield _front_card(snapshot, snapshot.example)
    if snapshot.sizes is not None and len(snapshot.sizes.end) > 1:
        yield _card(
            "Size of the answer over time",
            plots.sizes(snapshot.sizes),
            "Rows in each window's answer, by the window's end: the running median where windows are many.",
        )
    if snapshot.one_front is not None and len(snapshot.one_front.end) > 1:
        yield _card(
            "Size of the front over time",
            plots.sizes(snapshot.one_front),
            "Rows on the front, by event time: the running median where it changes often.",
        )
    if any(metrics.newest is not None for metrics in snapshot.batches):
        yield _card(
            "Late rows against the budget, and the waiting that keeps them few",
            plots.drops(snapshot.batches),
            "Above: the share of all rows so far that came too late and were dropped, by the newest event time. "
            "Below: how long behind the newest event time late rows are still waited for (the slack).",
        )
    if len(summary.times.end) > 1:
        yield _card("Window latency", plots.latency(summary.times, snapshot.speedup), _latency_caption(snapshot))
    if len(snapshot.batches) > 1:
        yield _card(
            "Rate",
            plots.rate(snapshot.batches),
            "A dot is one micro-batch: its rows over the time to the next one. The line is their running median.",
        )
    elastic = [decision for metrics in snapshot.batches if (decision := metrics.decision("workers"))]
    if elastic:
        last = elastic[-1].because
        yield _card(
            "Workers over time",
            plots.workers(snapshot.batches),
            "Above: how many workers each level might use. Below: how hard they worked, a dot for each micro-batch; at 0.9 a "
            f"level just keeps up. The last decision: {last}.",
        )
    yield _card(
        "Where a batch's time goes",
        plots.stages(snapshot.batches),
        f"Median wall clock of each step. A whole batch took {seconds(summary.batch_seconds[0])} (median), "
        f"19 in 20 less than {seconds(summary.batch_seconds[1])}.",
    )
    yield _card("Decisions and outcomes", _pairs(_decisions(snapshot, summary)))
    yield _card("Settings", _pairs(snapshot.settings))
    if snapshot.notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in snapshot.notes)
        yield _card("Worth knowing", f"<ul>{items}</ul>")


def _latency_caption(snapshot: Snapshot) -> str:
    base = (
        "From a window's first tuple, and from its end, to its answer, by the window's end; lines are running medians. "
    )
    if snapshot.speedup is None:
        return base + "Wall clock; a window counts as begun with the micro-batch that brought its first tuple."
    return base + (
        f"In the stream's own time: the recording was replayed {count(round(snapshot.speedup))} times faster, "
        f"so one second of wall clock is {seconds(snapshot.speedup)}. The window itself is {span(snapshot.window)}."
    )


def _card(title: str, body: str, caption: str = "", *, wide: bool = False) -> str:
    kind = "card wide" if wide else "card"
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}"><h2>{escape(title)}</h2>{body}{below}</figure>'


def _map_card(grid: GridMap) -> str:
    spec = grid.spec
    why = (
        f"the one with the most cells of {spec.mark.replace('_', ' ')}" if spec.mark else "the one with the most cells"
    )
    remark = f"Window {stamp(grid.panel.start)} to {stamp(grid.panel.end)}, {why}. A square is a cell of {spec.x} and {spec.y}. "
    remark += f"Below: {list(spec.shade)[-1].replace('_', ' ')} in windows over the run, by when they end."
    large = "".join(f"<div>{maps.shaded(grid, name)}</div>" for name in spec.shade)
    series = "".join(f"<div>{maps.small(grid, panel)}</div>" for panel in grid.series)
    return _card(
        "The map",
        f'<p>{escape(remark)}</p><div class="pair">{large}</div><div class="series">{series}</div>',
        wide=True,
    )


def _front_card(snapshot: Snapshot, chosen: Example) -> str:
    of = f" of {count(chosen.everything.num_rows)}" if chosen.everything is not None else ""
    where = f", {chosen.group}" if chosen.group else ""
    remark = f"{count(chosen.front.num_rows)}{of} rows{where}, window {stamp(chosen.start)} to {stamp(chosen.end)}. "
    remark += f"The largest answer of the run. {snapshot.meaning}"
    body = (
        f'<p>{escape(remark)}</p><div class="pair">'
        f"<div>{plots.front(chosen, snapshot.criteria)}</div>"
        f'<div class="scroll">{_front_table(chosen.front, snapshot)}</div></div>'
    )
    return _card("An example front", body, wide=True)


def _front_table(front: pa.Table, snapshot: Snapshot) -> str:
    ranked = [criterion.column for criterion in snapshot.criteria]
    names = [*ranked, *(name for name in front.column_names if name not in ranked)]
    names = names[:7]  # what a screen holds; the files have all
    rows = front.sort_by([(ranked[0], "ascending")]).slice(0, LISTED).select(names)
    numeric = {name for name in names if pa.types.is_floating(rows[name].type) or pa.types.is_integer(rows[name].type)}
    head = "".join(f'<th class="n">{escape(n)}</th>' if n in numeric else f"<th>{escape(n)}</th>" for n in names)
    body = "".join(f"<tr>{''.join(_cell(row[n], n in numeric) for n in names)}</tr>" for row in rows.to_pylist())
    left = front.num_rows - rows.num_rows
    more = f"<p>{count(left)} more in the files.</p>" if left else ""
    return f'<table class="front"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}'


def _cell(value: object, numeric: bool) -> str:
    text = f"{value:g}" if isinstance(value, float) else UNKNOWN if value is None else str(value)
    return f'<td class="n">{escape(text)}</td>' if numeric else f"<td>{escape(text)}</td>"


def _why(batches: Sequence[BatchMetrics], what: str) -> str:
    """Return the reason of the last batch that decided it: a drain reads no rows, and decides nothing of them."""
    decisions = (metrics.decision(what) for metrics in reversed(batches))
    return next((decision.because for decision in decisions if decision is not None), UNKNOWN)


def _last(batches: Sequence[BatchMetrics], workers: str) -> int:
    """Return how many workers had something to do, in the last batch in which any had."""
    return next((found for metrics in reversed(batches) if (found := getattr(metrics, workers))), 0)


def _decisions(snapshot: Snapshot, summary: Summary) -> Iterable[tuple[str, str]]:
    batches = snapshot.batches
    last = batches[-1]
    exchanged = [metrics for metrics in batches if metrics.exchange]
    yield "tasks", f"{_last(batches, 'plq_workers')} for panes (PLQ), {_last(batches, 'wlq_workers')} for windows (WLQ)"
    yield "panes shared out by", last.splitting
    yield "why so, in the last one", _why(batches, "splitting")
    yield "exchange of rows", f"in {count(len(exchanged))} of {count(len(batches))} batches"
    yield "why, in the last one", _why(batches, "exchange")
    where = Counter(metrics.wlq_where for metrics in batches if metrics.windows)
    yield "windows answered in", "; ".join(f"{w}: {counted(n, 'batches')}" for w, n in where.most_common()) or UNKNOWN
    yield "why, in the last one", _why(batches, "placement")
    slack = [metrics.slack for metrics in batches if metrics.slack is not None]
    if slack:
        yield "waiting for late rows (slack)", f"{span(min(slack))} to {span(max(slack))}, {span(slack[-1])} at the end"
    yield "complete up to (punctuation)", f"{stamp(last.punctuation)}, newest event {stamp(last.newest)}"
    for reason, n in sorted(summary.quarantined.items()):
        yield f"put aside (quarantined): {reason}", counted(n, "rows")
    if last.totals:
        parts = ", ".join(f"{count(n)} {name}" for name, n in last.totals.items() if name != "read")
        yield "rows since the first start", f"{count(last.totals['read'])} read: {parts}"
    yield "open at the end", f"{counted(last.open_panes, 'panes')} holding {counted(last.open_rows, 'rows')}"


def _pairs(pairs: Iterable[tuple[str, str]] | Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in pairs)
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
