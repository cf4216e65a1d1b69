"""The text of a measured figure, with its table, claims and verdicts, and its files: text, rows and plots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from skypane.types import ConfigError
from skypane_papers.figure import Measured
from skypane_papers.spread import spread

FORMATS = ("csv", "parquet")


def text(measured: Measured) -> str:
    """Return the figure as Markdown: the regime, the table, the claims and their verdicts."""
    figure = measured.figure
    parts = [f"## {measured.name}: {figure.title}", figure.regime, table(measured.tables), verdicts(measured)]
    if measured.quick:
        parts.insert(2, "*This is a quick run; its stream is too short for the claims.*")
    elif figure.seeds > 1:
        parts.insert(2, f"*{figure.seeds} seeds; a value that varies with them is shown as least..most.*")
    if figure.timing:
        parts.insert(2, "*Times of this machine.*")
    return "\n\n".join(parts)


def table(tables: Sequence[pd.DataFrame]) -> str:
    """Return the tables of one or several seeds as one in Markdown; if they are not alike in form, the first."""
    first = tables[0]
    if any(list(other.columns) != list(first.columns) or len(other) != len(first) for other in tables):
        tables = [first]
    cells = [[[_cell(value) for value in row] for row in one.itertuples(index=False)] for one in tables]
    lines = [[spread(same) for same in zip(*rows, strict=True)] for rows in zip(*cells, strict=True)]
    return _markdown(list(map(str, first.columns)), lines)


def verdicts(measured: Measured) -> str:
    """Return the claims and the findings as a Markdown table."""
    judged = zip(measured.figure.claims, measured.findings, strict=True)
    lines = [
        [claim.says, spread([finding.ours for finding in findings]), claim.verdict_of(findings)]
        for claim, findings in judged
    ]
    return _markdown(["the paper", "here", "verdict"], lines)


def _markdown(head: list[str], lines: Iterable[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, float):
        if value != value:  # noqa: PLR0124 - NaN
            return "-"
        return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def write(measured: Measured, folder: Path, form: str = "csv") -> list[Path]:
    """Write the rows, the plots and the text into `folder`; return the files."""
    from skypane_papers.drawing import draw  # noqa: PLC0415 - matplotlib is in the extra `cli`

    if form not in FORMATS:
        raise ConfigError(f"format must be {' or '.join(FORMATS)}, got {form!r}")
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"{measured.name}.{form}"
    if form == "csv":
        measured.every_row.to_csv(data, index=False)
    else:
        measured.every_row.to_parquet(data, index=False)
    files = [data]
    for plot in measured.figure.plots:
        files.append(folder / f"{measured.name}{plot.name}.svg")
        draw(plot, measured.rows, files[-1])
    files.append(folder / f"{measured.name}.md")
    pictures = "\n".join(f"![{plot.title}]({measured.name}{plot.name}.svg)" for plot in measured.figure.plots)
    files[-1].write_text(f"{text(measured)}\n\n{pictures}\n", encoding="utf-8")
    return files
