"""README's figures: ranges over the turns of the newest run that has three of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from measure.results.record import Result, Run, Table

TURNS: Final = 3
"""How often the programs are run from which README quotes."""
NEEDED: Final = ("streaming", "latency")
"""Those programs; without any of them nothing is quoted."""
ALSO: Final = ("papers_cpp",)
"""Programs that are quoted where they could be run."""
QUOTED: Final = (*NEEDED, *ALSO)

Figures = Callable[[str, str, Mapping[str, str], str], list[float]]


def text(measured: Sequence[tuple[Result, Run]]) -> str:
    """Return the paragraph; nothing if no run has measured it often enough."""
    for run in reversed(list({id(run): run for _, run in measured}.values())):
        results = [result for result, of in measured if of is run]
        of_name = {name: [result for result in results if result.name == name] for name in QUOTED}
        if all(len(of_name[name]) >= TURNS for name in NEEDED):
            return _paragraph(of_name, run)
    return ""


def _paragraph(results: Mapping[str, Sequence[Result]], run: Run) -> str:
    engine = {d: _rates(results["streaming"], d, "engine, rows/s") for d in (4, 8)}
    stage = [rate for d in (4, 8) for rate in _rates(results["streaming"], d, "unmeasured, rows/s")]
    at = {"rows/s": "50,000", "criteria": "4"}
    half, most = (_cells(results["latency"], "latency", at, f"{name}, ms") for name in ("p50", "p95"))
    return "\n".join([
        f"On two cores ({run.machine['processor']}, {run.day}), a skyline of each window (1 s, every 0.2 s) of 10,000-tuple panes sustains {_millions(engine[4])}",
        f"rows/s with 4 criteria and {_millions(engine[8])} with 8, in batches of a million rows. A pipeline that only passes the rows through Python, set up as the",
        f"engine's is, sustains {_millions(stage)}. At 50,000 rows/s the answer of a window can be read {_seconds(half)} after the row that closes it",
        f"(median; 95th percentile {_seconds(most)}). {_of_cpp(results)}Figures are ranges over {TURNS} runs in turn.",
    ])  # fmt: skip


def _of_cpp(results: Mapping[str, Sequence[Result]]) -> str:
    found = []
    for rows in ("1,000,000", "100,000"):
        lines = {d: {"rows/batch": rows, "criteria": str(d)} for d in (4, 8)}
        ratios = {d: _cells(results["papers_cpp"], "papers", line, "engine : C++") for d, line in lines.items()}
        cases = " and ".join(
            f"{_range(of, _ratio)} times with {d} criteria" for d, of in ratios.items() if len(of) >= TURNS
        )
        if cases:
            found.append(f"{cases} in batches of {rows} rows")
    if not found:
        return ""
    joined = ",\n".join(found)
    return f"Compared with the throughput of paper 1's C++ (two threads), skypane's is\n{joined}.\n"


def _rates(results: Sequence[Result], criteria: int, column: str) -> list[float]:
    return _cells(results, "streaming", {"rows/batch": "1,000,000", "criteria": str(criteria)}, column)


def _cells(results: Sequence[Result], mark: str, line: Mapping[str, str], column: str) -> list[float]:
    """Return the cell of each turn, in the lines whose cells are these."""
    found = []
    for table in (table for result in results for table in result.tables if table.mark == mark):
        found += [float(cell.replace(",", "")) for cell in cells(table, line, column)]
    return found


def cells(table: Table, line: Mapping[str, str], column: str) -> list[str]:
    """Return the cells of a column in the lines that have these cells; raise KeyError for a column that is not there."""
    at = {name: number for number, name in enumerate(table.head)}
    return [row[at[column]] for row in table.lines if all(row[at[name]] == cell for name, cell in line.items())]


def _millions(rates: Sequence[float]) -> str:
    return f"{_range([rate / 1e6 for rate in rates], '{:.1f}'.format)} M"


def _seconds(millis: Sequence[float]) -> str:
    return f"{_range([each / 1e3 for each in millis], '{:.2f}'.format)} s"


def _ratio(value: float) -> str:
    """Return a ratio with two digits, from 10 on without decimals: 0.46, 1.5, 10, 172."""
    for digits, end in ((2, 0.995), (1, 9.95)):
        if value < end:
            return f"{value:.{digits}f}"
    return f"{value:.0f}"


def _range(values: Sequence[float], written: Callable[[float], str]) -> str:
    """Return the least and the greatest value; one of them if they are written alike."""
    low, high = written(min(values)), written(max(values))
    return low if low == high else f"{low} to {high}"
