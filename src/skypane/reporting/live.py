"""Display of a running query: a panel that refreshes on a terminal, plain lines anywhere else.

Both receive one BatchMetrics at a time, on the thread in which the engine calls back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol, Self, TypeAlias

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from skypane.kernels.warming import compilations
from skypane.metrics import BatchMetrics
from skypane.naming import printable
from skypane.reporting.query_view import CAUSE, QueryView, facts, line
from skypane.wording import clock, percent

#: minimum seconds between plain lines, so that a log is not flooded
LINE_EVERY = 5.0
FRONT_ROWS = 5
#: minimum seconds between updates of the front that is shown
FRONT_EVERY = 1.0


#: what Ctrl-C does, below the panel
STOPS = "Ctrl-C stops"


def panel(
    view: QueryView,
    elapsed: float,
    columns: Sequence[str] | None = None,
    interrupt: str = STOPS,
    compiled: int = 0,
    now: float | None = None,
) -> RenderableType:
    """Return the panel for a terminal; `compiled` counts the kernels that were compiled before the first batch.

    now   the time in seconds since the epoch; None: it does not count how long ago the last batch was
    """
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", justify="right")
    grid.add_column()
    for name, text in facts(view, now):
        grid.add_row(plain(name), plain(text, _alarm(name, view)))
    if compiled and view.latest is None:
        grid.add_row("kernels", f"{compiled} compiled, once per installation")
    body: list[RenderableType] = [grid]
    if view.share is not None:
        eta = view.eta()
        left = f"about {clock(eta)} left" if eta is not None else ""
        bar = Table.grid(padding=(0, 2))
        bar.add_row(ProgressBar(total=1.0, completed=min(1.0, view.share), width=40), percent(view.share), left)
        body = [bar, Text(), *body]
    if view.front is not None and view.front.num_rows:
        body += [Text(), front_table(view.front, columns)]
    return Panel(
        Group(*body), title=plain(view.title), subtitle=f"{clock(elapsed)} elapsed, {interrupt}", title_align="left"
    )


def _alarm(name: str, view: QueryView) -> str:
    m = view.latest
    return "bold red" if name == CAUSE or (name == "late rows" and m is not None and m.over_budget) else ""


def front_table(front: pa.Table, columns: Sequence[str] | None = None) -> RenderableType:
    """Return the first rows of one window's answer."""
    end = front.column("window_end")[0].as_py() if "window_end" in front.column_names else None
    title = "latest front" if end is None else f"latest front, window to {end:%Y-%m-%d %H:%M}"
    hidden = {"window_start", "window_end"}
    names = [name for name in columns or front.column_names if name in front.column_names and name not in hidden]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in names:
        table.add_column(plain(name), no_wrap=True)
    for row in front.slice(0, FRONT_ROWS).to_pylist():
        table.add_row(*(_cell(row[name]) for name in names))
    return Group(Text(f"{title}: {front.num_rows} rows"), table)


def _cell(value: object) -> Text:
    if isinstance(value, float):
        return plain(f"{value:g}")
    return plain(f"{value:%Y-%m-%d %H:%M}" if hasattr(value, "strftime") else str(value))


def plain(text: str, style: str = "") -> Text:
    """Return a text of others for a terminal: without markup, and with control characters as escapes."""
    return Text(printable(text), style)


#: returns the latest answer; called only when it is shown
Front: TypeAlias = Callable[[], pa.Table | None]


def _no_front() -> None:
    return None


class Display(Protocol):
    """A display that receives the metrics of each batch."""

    def batch(self, metrics: BatchMetrics, front: Front = _no_front) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_error: object) -> None: ...


class TerminalDisplay:
    """A panel that is redrawn four times a second, so that the clock advances between batches."""

    def __init__(
        self, view: QueryView, console: Console, columns: Sequence[str] | None = None, interrupt: str = STOPS
    ) -> None:
        self._view = view
        self._columns = columns
        self._interrupt = interrupt
        self._since = time.monotonic()
        self._read = -FRONT_EVERY
        self._compiled: list[str] = []
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4)
        self._open = ExitStack()

    def _render(self) -> RenderableType:
        elapsed = time.monotonic() - self._since
        return panel(self._view, elapsed, self._columns, self._interrupt, len(self._compiled), time.time())

    def batch(self, metrics: BatchMetrics, front: Front = _no_front) -> None:
        now = time.monotonic() - self._since
        due = now - self._read >= FRONT_EVERY and metrics.windows > 0
        if due:
            self._read = now
        self._view = self._view.after(metrics, front() if due else None)

    def __enter__(self) -> Self:
        self._open.enter_context(self._live)
        self._compiled = self._open.enter_context(compilations(None))
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()


class PlainDisplay:
    """At most one line every LINE_EVERY seconds, for logs and pipes; the last batch is always printed."""

    def __init__(
        self, view: QueryView, write: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._view = view
        self._write = write
        self._now = now
        self._since = now()
        self._printed = -LINE_EVERY
        self._pending = False

    def batch(self, metrics: BatchMetrics, front: Front = _no_front) -> None:
        del front  # a line has no room for the rows of a table
        self._view = self._view.after(metrics)
        self._pending = True
        if self._now() - self._since - self._printed >= LINE_EVERY:
            self._print()

    def _print(self) -> None:
        self._printed = self._now() - self._since
        self._pending = False
        self._write(line(self._view, self._printed))

    def __enter__(self) -> Self:
        self._write(self._view.title)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._pending:
            self._print()


def display(view: QueryView, console: Console, columns: Sequence[str] | None = None, interrupt: str = STOPS) -> Display:
    """Return a TerminalDisplay if `console` is a terminal, else a PlainDisplay."""
    if console.is_terminal:
        return TerminalDisplay(view, console, columns, interrupt)
    # Not by rich, which ends the process if nobody reads the lines: the query has to be stopped first.
    return PlainDisplay(view, lambda text: print(printable(text), file=console.file, flush=True))


@contextmanager
def starting(console: Console) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the step which a start has come to, and for how long it takes, while the context is open.

    It shows nothing unless `console` is a terminal.
    """
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as steps:
        task = steps.add_task("", total=None)
        yield lambda text: steps.reset(task, description=text)
