"""What `clocks=` is worth on streams whose clocks disagree: rows dropped, kept out, and the latency of windows.

    python -m measure.yardstick.clocks

prints a table in Markdown: AqKSlack(0.01), windows of ten minutes. Event times are the true ones that the clocks should
show, so a row that enters with another is counted as wrong when the difference is more than a minute.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from measure.yardstick.streams import DISAGREEING, Stream, disagreeing
from skypane.progress import AqKSlack, PaneArrivals, SourceCount
from skypane.progress.clock_offsets import CLOCKS, MINUTE
from skypane.types import IntArray
from skypane.wording import percent, span

BATCHES = (50, 200, 1_000)


@dataclass(frozen=True)
class ClockScore:
    """Shares of all rows, and the mean time from a window's end to its answer (microseconds)."""

    dropped: float
    kept_out: float
    wrong: float
    latency: float


def main() -> None:
    """Print the table."""
    heads = " | ".join(f"`{clocks}`" for clocks in CLOCKS)
    sys.stdout.write(f"| clocks | batch | {heads} |\n|---|---:|{'---:|' * len(CLOCKS)}\n")
    for name in DISAGREEING:
        if "clock" in name:
            stream = disagreeing(name)
            for batch in BATCHES:
                cells = (_told(scored(stream, batch, AqKSlack(0.01, clocks=clocks))) for clocks in CLOCKS)
                sys.stdout.write(f"| {name} | {batch:,} | {' | '.join(cells)} |\n")
                sys.stdout.flush()


def _told(score: ClockScore) -> str:
    shares = f"{percent(score.dropped)}, {percent(score.kept_out)}, {percent(score.wrong)}"
    return f"{shares}; {span(round(score.latency))}"


def scored(stream: Stream, batch: int, policy: AqKSlack) -> ClockScore:
    """Return the score of a policy on a stream whose sources and true times are known."""
    if stream.source is None or stream.sent is None or stream.arrival is None:
        raise ValueError(f"the sources and true times of {stream.name} are not known")
    windows, state, kept_out, wrong = stream.windows[0], policy.init(), 0, 0
    ends: list[IntArray] = []
    for at in range(0, len(stream.event), batch):
        part = slice(at, at + batch)
        event, source, arrived = stream.event[part], stream.source[part], int(stream.arrival[part][-1])
        rules = policy.clock_rules(state)
        by = np.array([rules.offsets.get(str(name), 0) if rules else 0 for name in source.tolist()], np.int64)
        enters = np.ones(len(event), bool) if rules is None or rules.align else by == 0
        shown = event - by if rules and rules.align else event
        wrong += int((np.abs(shown - stream.sent[part]) > MINUTE)[enters].sum())
        kept_out += int((~enters).sum())
        raw = _newest(event[by != 0], source[by != 0])
        arrivals = PaneArrivals.at_once(shown[enters], windows)
        rows = Counter(map(str, source[enters].tolist()))
        counts = {
            name: SourceCount(rows[name], 0, time) for name, time in _newest(shown[enters], source[enters]).items()
        }
        before = state.punctuation
        state, _ = policy.decide(state, replace(arrivals, sources=counts, shown=raw))
        if before is not None and state.punctuation is not None:
            answered = np.arange(before // windows.slide + 1, state.punctuation // windows.slide + 1) * windows.slide
            ends.append(arrived - answered)
    total = len(stream.event)
    latency = float(np.concatenate(ends).mean())
    return ClockScore(state.dropped / total, kept_out / total, wrong / total, latency)


def _newest(times: IntArray, source: IntArray) -> dict[str, int]:
    numbers, place = np.unique(source, return_inverse=True)
    newest = np.full(len(numbers), np.iinfo(np.int64).min)
    np.maximum.at(newest, place, times)
    return dict(zip(map(str, numbers.tolist()), newest.tolist(), strict=True))


if __name__ == "__main__":
    main()
