"""Render a frozen Snapshot of one run as a self-contained HTML page, without scripts or external resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from importlib import resources
from string import Template
from typing import Final

import numpy as np
import pyarrow as pa

from skypane.diagnosis.diagnose import all_causes
from skypane.metrics import BatchMetrics
from skypane.reporting import maps, plots
from skypane.reporting.grids import GridMap
from skypane.reporting.query_view import rows_so_far
from skypane.reporting.snapshot import Example, Snapshot
from skypane.reporting.summary import Summary, summarise
from skypane.wording import UNKNOWN, by_name, count, counted, percent, seconds, span, stamp

#: the outcome of a run without a micro-batch
NOTHING: Final = (
    "no micro-batch was finished: there were no new rows, or the run has ended before their first batch did"
)

#: maximum number of rows listed of the example front
LISTED = 18


def render(snapshot: Snapshot) -> str:
    """Return the HTML page; without a micro-batch it has the settings and the notes."""
    page = Template(resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8"))
    return page.substitute(
        title=escape(snapshot.title),
        question=escape(snapshot.question),
        **(_outcomes(snapshot, summarise(snapshot)) if snapshot.batches else _nothing(snapshot)),
        footer=escape("Written by skypane. Times are event times unless marked as wall clock."),
    )


def _outcomes(snapshot: Snapshot, summary: Summary) -> dict[str, str]:
    """Return the parts of the page on a run."""
    return {
        "when": escape(_when(snapshot, summary)),
        "tiles": "\n".join(_tiles(snapshot, summary)),
        "cards": "\n".join([*_cards(snapshot, summary), *_closing(snapshot)]),
    }


def _nothing(snapshot: Snapshot) -> dict[str, str]:
    """Return these parts for a run without a micro-batch."""
    return {"when": escape(NOTHING), "tiles": "", "cards": "\n".join(_closing(snapshot))}


def lines(snapshot: Snapshot) -> list[str]:
    """Return the outcome of a run as a few lines of plain text."""
    if not snapshot.batches:
        return [NOTHING]
    s = summarise(snapshot)
    rate = f"{count(round(s.rate))} rows/s in {counted(s.batches, 'micro-batches')}"
    read = f"{counted(s.rows, 'rows')} in {seconds(s.seconds)}: {rate}"
    causes = [cause.line for cause in all_causes(snapshot.batches)]
    if not snapshot.queries:
        return [read, *_outcome(snapshot), *causes]
    return [read, *causes, *(f"{one.title}: {'; '.join(_outcome(one))}" for one in snapshot.queries)]


def _outcome(one: Snapshot) -> list[str]:
    """Return the outcome of one query: its windows, and its rows by where they are."""
    s, m = summarise(one), one.batches[-1]
    budget = f" of {percent(m.drop_budget)} allowed" if m.drop_budget is not None else ""
    outcome = [
        f"{counted(s.windows, 'windows answered')} with {counted(s.window_rows, 'rows')}",
        f"{percent(m.drop_ratio)} of the rows were late{budget} ({count(m.late_so_far)} dropped{_too_few(m)})",
        *(f"{counted(n, 'rows quarantined')}: {reason}" for reason, n in sorted(s.quarantined.items())),
    ]
    if held := m.totals.get("held", m.held_rows):
        outcome.append(f"{counted(held, 'rows')} held, far ahead of all others: later rows decide, or --drain")
    if rows := m.totals.get("open", m.open_rows):
        outcome.append(
            f"{counted(rows, 'rows')} in windows that are still open: more may come, or --drain answers them"
        )
    return outcome


def _too_few(m: BatchMetrics) -> str:
    """Return the remark that a single late row is more than the budget, if there are so few rows."""
    if m.drop_budget is None or not m.over_budget or m.seen_rows * m.drop_budget >= 1:
        return ""
    return f"; {percent(m.drop_budget)} of {counted(m.seen_rows, 'rows')} is less than one"


def _when(snapshot: Snapshot, summary: Summary) -> str:
    began = datetime.fromtimestamp(snapshot.batches[0].started_at, UTC)
    batches = counted(summary.batches, "micro-batches")
    return f"{began:%Y-%m-%d %H:%M} UTC, running time {seconds(summary.seconds)}, {batches}"


def _tiles(snapshot: Snapshot, summary: Summary) -> Iterable[str]:
    last = summary.last
    quarantined = by_name(last.of_each(lambda one: count(one.totals.get("quarantined", 0))))
    yield _tile("rows read", count(rows_so_far(snapshot.batches)), f"{quarantined} of them quarantined as unusable")
    yield _tile("rate", f"{count(round(summary.rate))} rows/s", "sustained, including waiting")
    per = f"{summary.window_rows / summary.windows:.1f} rows each" if summary.windows else "no window closed yet"
    yield _tile("windows answered", count(summary.windows), per)
    budget = f"drop budget {percent(last.drop_budget)}" if last.drop_budget is not None else "no drop budget"
    yield _tile(
        "late rows",
        by_name(last.of_each(lambda one: percent(one.drop_ratio))),
        f"{by_name(last.of_each(lambda one: counted(one.late_so_far, 'rows dropped')))}; {budget}",
        bad=last.over_budget,
    )
    if len(summary.times.lag):
        lag = float(np.median(summary.times.lag))
        time = f"{seconds(lag * snapshot.speedup)} of stream time" if snapshot.speedup else "wall clock"
        yield _tile("lag of an answer after its window's end", seconds(lag), f"median; {time}")
    if (p95 := summary.latencies.p95) is not None:
        judged = snapshot.batches[-1].decision("latency")
        missed = judged is not None and judged.value == "missed"
        yield _tile("latency of an answer after its last row", seconds(p95), "95th percentile", bad=missed)


def _tile(name: str, value: str, remark: str, *, bad: bool = False) -> str:
    kind = "tile bad" if bad else "tile"
    return f'<div class="{kind}"><span>{escape(name)}</span><b>{escape(value)}</b><small>{escape(remark)}</small></div>'


def _cards(snapshot: Snapshot, summary: Summary) -> Iterable[str]:
    if snapshot.grid is not None:
        yield _map_card(snapshot.grid)
    if snapshot.queries:
        yield _card(
            "Queries", _pairs([(one.title, f"{one.question} {'; '.join(_outcome(one))}.") for one in snapshot.queries])
        )
    for one in (snapshot, *snapshot.queries):
        yield from _answer_cards(one, "" if one is snapshot else f"{one.title}: ")
    if causes := all_causes(snapshot.batches):
        yield _card("Losses and delays, and what to set", _listed([cause.line for cause in causes]), wide=True)
    if any(metrics.newest is not None for metrics in snapshot.batches):
        yield _card(
            "Late rows against the drop budget, and the slack",
            plots.drops(snapshot.batches),
            "Above: the share of all rows so far that were late and dropped, by the newest event time. "
            "Below: the slack, by which the punctuation lies behind the newest event time.",
        )
    for one, name, times in (
        (snapshot, "", summary.times),
        *((one, f"{one.title}: ", summarise(one).times) for one in snapshot.queries),
    ):
        if len(times.end) > 1:
            yield _card(f"{name}Window latency", plots.latency(times, snapshot.speedup), _latency_caption(one))
    if len(snapshot.batches) > 1:
        yield _card(
            "Rate",
            plots.rate(snapshot.batches),
            "A dot is one micro-batch: its rows over the time to the next one. The line is the running median.",
        )
    elastic = [decision for metrics in snapshot.batches if (decision := metrics.decision("workers"))]
    if elastic:
        last = elastic[-1].because
        yield _card(
            "Workers over time",
            plots.workers(snapshot.batches),
            "Above: workers available to each level. Below: their utilisation, one dot per micro-batch; at 0.9 a level "
            f"just keeps up. The last decision: {last}.",
        )
    yield _card(
        "Where a batch's time goes",
        plots.stages(snapshot.batches),
        f"Median wall clock time of each step. A whole batch took {seconds(summary.batch_seconds[0])} at the median "
        f"and {seconds(summary.batch_seconds[1])} at the 95th percentile.",
    )
    yield _card("Decisions and outcomes", _pairs(_decisions(snapshot, summary)))


def _closing(snapshot: Snapshot) -> Iterable[str]:
    """Yield the cards that every report ends with."""
    yield _card("Settings", _pairs(snapshot.settings))
    if snapshot.notes:
        yield _card("Worth knowing", _listed(snapshot.notes))


def _listed(notes: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>"


def _answer_cards(snapshot: Snapshot, name: str) -> Iterable[str]:
    """Yield the cards on the answers of one query; `name` begins their titles."""
    if snapshot.example is not None and len(snapshot.criteria) > 1:
        yield _front_card(snapshot, snapshot.example, name)
    if snapshot.sizes is not None and len(snapshot.sizes.end) > 1:
        yield _card(
            f"{name}Size of the answer over time",
            plots.sizes(snapshot.sizes),
            "Rows in each window's answer by the window's end; the running median if there are many windows.",
        )
    if snapshot.one_front is not None and len(snapshot.one_front.end) > 1:
        yield _card(
            f"{name}Size of the front over time",
            plots.sizes(snapshot.one_front),
            "Rows on the front by event time; the running median if it changes often.",
        )


def _latency_caption(snapshot: Snapshot) -> str:
    base = "Time from a window's first row, and from its end, to its answer. Lines are running medians. "
    if snapshot.speedup is None:
        return base + "Wall clock; a window opens with the micro-batch that contains its first row."
    return base + (
        f"In stream time: the recording was replayed {count(round(snapshot.speedup))} times faster, so one second of "
        f"wall clock is {seconds(snapshot.speedup)}. The window is {span(snapshot.window)} long."
    )


def _card(title: str, body: str, caption: str = "", *, wide: bool = False) -> str:
    kind = "card wide" if wide else "card"
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}"><h2>{escape(title)}</h2>{body}{below}</figure>'


def _map_card(grid: GridMap) -> str:
    spec = grid.spec
    why = f"which has the most cells with {spec.mark.replace('_', ' ')}" if spec.mark else "which has the most cells"
    remark = f"Window {stamp(grid.panel.start)} to {stamp(grid.panel.end)}, {why}. "
    remark += f"Each square is a cell of {spec.x} and {spec.y}. "
    remark += f"Below: {list(spec.shade)[-1].replace('_', ' ')} in windows over the run, by the window's end."
    large = "".join(f"<div>{maps.shaded(grid, name)}</div>" for name in spec.shade)
    series = "".join(f"<div>{maps.small(grid, panel)}</div>" for panel in grid.series)
    return _card(
        "The map",
        f'<p>{escape(remark)}</p><div class="pair">{large}</div><div class="series">{series}</div>',
        wide=True,
    )


def _front_card(snapshot: Snapshot, chosen: Example, name: str) -> str:
    of = f" of {count(chosen.everything.num_rows)}" if chosen.everything is not None else ""
    where = f", {chosen.group}" if chosen.group else ""
    remark = f"{count(chosen.front.num_rows)}{of} rows{where}, window {stamp(chosen.start)} to {stamp(chosen.end)}. "
    remark += f"This is the largest answer of the run. {snapshot.meaning}"
    body = (
        f'<p>{escape(remark)}</p><div class="pair">'
        f"<div>{plots.front(chosen, snapshot.criteria)}</div>"
        f'<div class="scroll">{_front_table(chosen.front, snapshot)}</div></div>'
    )
    return _card(f"{name}An example front", body, wide=True)


def _front_table(front: pa.Table, snapshot: Snapshot) -> str:
    ranked = [criterion.column for criterion in snapshot.criteria]
    names = [*ranked, *(name for name in front.column_names if name not in ranked)]
    names = names[:7]  # as many columns as fit a screen
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
    """Return the reason of the last decision on `what`; a drain reads no rows and may have none."""
    decisions = (metrics.decision(what) for metrics in reversed(batches))
    return next((decision.because for decision in decisions if decision is not None), UNKNOWN)


def _last(batches: Sequence[BatchMetrics], workers: str) -> int:
    """Return the number of workers in the last batch that used any; 0 if none did."""
    return next((found for metrics in reversed(batches) if (found := getattr(metrics, workers))), 0)


def _decisions(snapshot: Snapshot, summary: Summary) -> Iterable[tuple[str, str]]:
    batches = snapshot.batches
    last = batches[-1]
    exchanged = [metrics for metrics in batches if metrics.exchange]
    yield "tasks", f"{_last(batches, 'plq_workers')} for panes (PLQ), {_last(batches, 'wlq_workers')} for windows (WLQ)"
    yield "splitting policy", last.splitting
    yield "reason for the last splitting", _why(batches, "splitting")
    yield "exchange of rows", f"in {count(len(exchanged))} of {count(len(batches))} batches"
    yield "reason for the last exchange", _why(batches, "exchange")
    where = Counter(metrics.wlq_where for metrics in batches if metrics.windows)
    yield "windows answered in", "; ".join(f"{w}: {counted(n, 'batches')}" for w, n in where.most_common()) or UNKNOWN
    yield "reason for the last placement", _why(batches, "placement")
    slack = [metrics.slack for metrics in batches if metrics.slack is not None]
    if slack:
        yield "slack", f"{span(min(slack))} to {span(max(slack))}, {span(slack[-1])} at the end"
    yield "complete up to (punctuation)", f"{stamp(last.punctuation)}, newest event {stamp(last.newest)}"
    for reason, n in sorted(summary.quarantined.items()):
        yield f"quarantined: {reason}", counted(n, "rows")
    for one, name in ((snapshot, ""), *((one, f" ({one.title})") for one in snapshot.queries)):
        if (taken := summarise(one).latencies).answers:
            shares = ((taken.p50, "p50"), (taken.p95, "p95"), (taken.p99, "p99"), (taken.longest, "longest"))
            parts = ", ".join(f"{seconds(value)} ({share})" for value, share in shares if value is not None)
            yield f"latency of answers{name}", parts
    if (judged := last.decision("latency")) is not None:
        yield "bound on the latency", f"{judged.value}: {judged.because}"
    for name, text in last.account.items():
        if text:
            yield f"rows since the first driver start{f' ({name})' if name else ''}", text
    yield (
        "open at the end",
        f"{counted(last.open_panes, 'panes')}, whose partials have {counted(last.open_rows, 'rows')}",
    )


def _pairs(pairs: Iterable[tuple[str, str]] | Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in pairs)
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
