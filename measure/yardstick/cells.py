"""AqKSlack compared with K-slack and the best fixed delay in hindsight, cell by cell.

    python -m measure.yardstick.cells [docs]
    python -m measure.yardstick.cells FILE [STRETCH [ROUNDS]]

writes the tables into docs/progress-yardstick.md, or prints those of a file with columns `time` and `arrival`, with its
delays multiplied by STRETCH and the stream repeated ROUNDS times.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure.tables import replace_between
from measure.yardstick.streams import Stream, recorded, streams
from skypane.progress import AqKSlack
from skypane.progress.policy_yardstick import Comparison, measure
from skypane.windows import Windows
from skypane.wording import count, span

BATCHES = (50, 200, 1_000, 5_000)
BUDGETS = (0.001, 0.01, 0.02, 0.05)
_LEAST_BATCHES = 20
_MEAN, _P99 = 1.08, 1.2

Cells = dict[tuple[Windows, int, float], Comparison]


def measured(stream: Stream) -> Cells:
    """Return all cells of a stream."""
    return {
        (windows, batch, budget): measure(stream.event, windows, batch, AqKSlack(budget))
        for windows in stream.windows
        for batch in BATCHES
        if len(stream.event) >= _LEAST_BATCHES * batch
        for budget in BUDGETS
    }


def table(stream: Stream, cells: Cells) -> str:
    """Return the ratios of one stream as a Markdown table under its name."""
    heads = " | ".join(f"{budget:.1%}" for budget in BUDGETS)
    lines = [f"**{stream.name}**", "", f"| window | batch | {heads} |", "|---|---:|" + "---:|" * len(BUDGETS)]
    for windows, batch in dict.fromkeys((windows, batch) for windows, batch, _ in cells):
        found = " | ".join(_cell(cells[windows, batch, budget]) for budget in BUDGETS)
        lines.append(f"| {_told(windows)} | {batch:,} | {found} |")
    return "\n".join(lines)


def _told(windows: Windows) -> str:
    return f"{span(windows.length)} / {span(windows.slide)}"


def _cell(found: Comparison) -> str:
    mean, p99 = found.ratios
    figures = f"{mean:.2f}, {p99:.2f}; {found.dropped / found.budget:.2f}"
    return figures if found.judged else f"({figures})"


def others(stream: Stream, cells: Cells) -> Iterator[str]:
    """Yield the rows on silence, first answers and excess of one stream, at one window and batch, and the worst of all."""
    windows, batch = stream.windows[1], 200
    for budget in BUDGETS:
        found = cells.get((windows, batch, budget))
        if found is None:
            continue
        figures = [
            f"{found.dropped:.3%}",
            f"{found.unavoidable:.3%}",
            f"{span(round(found.tested.mean))}",
            f"{span(round(found.kslack.mean))}",
            f"{span(found.tested.silence)}",
            f"{span(found.kslack.silence)}",
            f"{span(found.held)} of {span(found.longest)}",
            f"{span(found.tested.first)}",
            f"{span(found.kslack.first)}",
            f"{count(round(found.tested.excess))}",
            f"{count(round(found.kslack.excess))}",
        ]
        yield f"| {stream.name} | {budget:.1%} | {' | '.join(figures)} |"


_OTHERS = (
    "| stream | budget | dropped | by K-slack | mean | K-slack's | silence | K-slack's | held | first answer | K-slack's "
    "| worst excess, rows | K-slack's |\n|---|---:|" + "---:|" * 11
)


def summary(all_cells: Sequence[tuple[Stream, Cells]]) -> str:
    """Return in a few lines how many cells are within what is promised, and which are not."""
    lines = []
    steady = [(s, key, m) for s, cells in all_cells if s.steady for key, m in cells.items()]
    judged = [(s, key, m) for s, key, m in steady if m.judged]
    beyond = [(s, key, m) for s, key, m in judged if m.ratios[0] > _MEAN or m.ratios[1] > _P99]
    over = [(s, key, m) for s, key, m in judged if m.chosen > m.budget]
    every = [m for _, cells in all_cells for m in cells.values()]
    lines.append(
        f"{len(every)} cells; {len(steady)} of streams without a change, {len(judged)} of them with as much to judge as "
        f"warm-up takes. Of these {len(judged) - len(beyond)} are within {_MEAN} of the best fixed delay's mean and "
        f"{_P99} of its p99; the largest ratios are {max(m.ratios[0] for *_, m in judged):.2f} and "
        f"{max(m.ratios[1] for *_, m in judged):.2f}. In {len(judged) - len(over)} the share that the policy chose to drop "
        f"stayed within the budget at every batch; the worst was {max(m.chosen / m.budget for *_, m in judged):.2f} of it."
    )
    for s, (windows, batch, budget), m in [*beyond, *over]:
        mean, p99 = m.ratios
        lines.append(
            f"- beyond: {s.name}, {_told(windows)}, batches of {batch:,}, {budget:.1%}: mean {mean:.2f}, p99 {p99:.2f}, "
            f"{m.chosen / m.budget:.2f} of the budget"
        )
    return "\n".join(lines)


def text(found: Sequence[tuple[Stream, Cells]]) -> str:
    """Return the whole page between its markers."""
    rows = "\n".join(line for stream, cells in found for line in others(stream, cells))
    tables = "\n\n".join(table(stream, cells) for stream, cells in found)
    return f"{summary(found)}\n\n{_OTHERS}\n{rows}\n\n{tables}"


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write the page unless a file is given."""
    where = Path(arguments[0] if arguments else "docs")
    file = None if where.is_dir() else where
    found = []
    for stream in streams() if file is None else [recorded(file, *map(int, arguments[1:]))]:
        found.append((stream, measured(stream)))
        sys.stderr.write(f"{stream.name}\n")
    page = text(found)
    sys.stdout.write(f"{page}\n")
    if file is None:
        replace_between(where / "progress-yardstick.md", "yardstick", page)


if __name__ == "__main__":
    main(sys.argv[1:])
