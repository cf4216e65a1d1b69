"""The text of a measured figure, with its table, claims and verdicts, and its files: text, rows and plots."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from skypane.types import ConfigError
from skypane_papers.figure import Measured

FORMATS = ("csv", "parquet")


def text(measured: Measured) -> str:
    """Return the figure as Markdown: the regime, the table, the claims and their verdicts."""
    figure = measured.figure
    parts = [f"## {measured.name}: {figure.title}", figure.regime, table(measured.table), verdicts(measured)]
    if measured.quick:
        parts.insert(2, "*This is a quick run; its stream is too short for the claims.*")
    return "\n\n".join(parts)


def table(rows: pd.DataFrame) -> str:
    """Return rows as a Markdown table."""
    return _markdown(
        list(map(str, rows.columns)), [[_cell(value) for value in row] for row in rows.itertuples(index=False)]
    )


def verdicts(measured: Measured) -> str:
    """Return the claims and the findings as a Markdown table."""
    lines = []
    for claim, finding in zip(measured.figure.claims, measured.findings, strict=True):
        ours = finding.ours if finding.holds or not claim.because else f"{finding.ours}: {claim.because}"
        lines.append([claim.says, ours, "yes" if finding.holds else "no"])
    return _markdown(["the paper", "here", "holds"], lines)


def _markdown(head: list[str], lines: Iterable[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, float):
        if value != value:  # noqa: PLR0124 - NaN
            return "-"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def write(measured: Measured, folder: Path, form: str = "csv") -> list[Path]:
    """Write the rows, the plots and the text into `folder`; return the files."""
    from skypane_papers.drawing import draw  # noqa: PLC0415 - matplotlib is in the extra `cli`

    if form not in FORMATS:
        raise ConfigError(f"format must be {' or '.join(FORMATS)}, got {form!r}")
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"{measured.name}.{form}"
    if form == "csv":
        measured.rows.to_csv(data, index=False)
    else:
        measured.rows.to_parquet(data, index=False)
    files = [data]
    for plot in measured.figure.plots:
        files.append(folder / f"{measured.name}{plot.name}.svg")
        draw(plot, measured.rows, files[-1])
    files.append(folder / f"{measured.name}.md")
    pictures = "\n".join(f"![{plot.title}]({measured.name}{plot.name}.svg)" for plot in measured.figure.plots)
    files[-1].write_text(f"{text(measured)}\n\n{pictures}\n", encoding="utf-8")
    return files
