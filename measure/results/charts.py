"""Charts of comparisons: a point for the median of each way on a logarithmic axis, with a line over its rounds.

An SVG has its own colours for light and dark, a ground, and a title and a description that screen readers read. Texts
stay texts, in the reader's font.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from measure.results.record import Comparison
from skypane.reporting.canvas import INK, MUTED, SERIES, WIDTH, as_svg, styled

LIGHT: Final = {"ink": "#1b2430", "muted": "#5a6675", "grid": "#dfe4ea", "paper": "#ffffff", "series-1": "#1f5fa8"}
DARK: Final = {"ink": "#e6eaf0", "muted": "#9aa7b5", "grid": "#313a46", "paper": "#1a2029", "series-1": "#7db3f2"}
"""Colours of the report's pages."""
_LINE: Final = 0.3
"""Inches of a way."""
_UNITS: Final = ((1e6, " M"), (1e3, " K"), (1.0, ""))
_GROUND: Final = '<rect width="100%" height="100%" fill="var(--paper)"/>'


def rows_per_second(comparisons: Sequence[Comparison], title: str) -> str:
    """Return an SVG with a panel for each case: rows per second of each way, the fastest first; further right is faster."""
    heights = [len(one.sides) for one in comparisons]
    with styled():
        size = (WIDTH + 1.2, _LINE * sum(heights) + 0.5 * len(heights) + 0.5)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)
        for axes, comparison in zip(panels[:, 0], comparisons, strict=True):
            _panel(axes, comparison)
        panels[-1, 0].set_xlabel("rows per second, logarithmic")
        panels[-1, 0].xaxis.set_major_locator(LogLocator(subs=_steps(comparisons)))
        svg = as_svg(figure)
    return _readable(svg, title, "; ".join(map(described, comparisons)))


def described(comparison: Comparison) -> str:
    """Return a comparison as a sentence: its case, and each way with its rows per second, the fastest first."""
    return f"{comparison.case}: " + ", ".join(f"{side} {short(comparison.rate(side))}" for side in fastest(comparison))


def fastest(comparison: Comparison) -> list[str]:
    """Return the ways, the fastest first."""
    return sorted(comparison.sides, key=comparison.rate, reverse=True)


def is_ours(side: str, comparison: Comparison) -> bool:
    """Return whether a way is skypane's."""
    return side == comparison.ours or side.startswith("skypane")


def short(rate: float) -> str:
    """Return a number with three digits: 1.25 M, 48.1 K, 730.

    >>> short(1_253_000), short(48_060), short(730.2), short(12_345_678), short(999_900)
    ('1.25 M', '48.1 K', '730', '12.3 M', '1.00 M')
    """
    rate = float(f"{rate:.3g}")  # before the unit is chosen: 999,900 is a million
    unit, name = next((unit, name) for unit, name in _UNITS if rate >= unit or unit == 1.0)
    value = rate / unit
    digits = 0 if value >= 100 or unit == 1.0 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{name}"


def _panel(axes: Axes, comparison: Comparison) -> None:
    sides = fastest(comparison)
    for at, side in enumerate(sides):
        rates, colour = comparison.rates(side), SERIES[0] if is_ours(side, comparison) else MUTED
        axes.plot([min(rates), max(rates)], [at, at], color=colour, linewidth=2.4, solid_capstyle="round")
        axes.plot([comparison.rate(side)], [at], "o", color=colour, markersize=6)
        axes.annotate(
            short(comparison.rate(side)), (max(rates), at), (8, 0), textcoords="offset points", va="center", color=INK
        )
    axes.set_yticks(range(len(sides)), sides)
    for side, label in zip(sides, axes.get_yticklabels(), strict=True):
        if is_ours(side, comparison):
            label.set(color=INK, fontweight="bold")
    axes.set_ylim(len(sides) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.margins(x=0.18)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_title(comparison.case, loc="left", fontsize=10.5, color=INK)


def _steps(comparisons: Sequence[Comparison]) -> tuple[float, ...]:
    """Return at which multiples of a power of ten the axis has ticks: fewer where it spans many."""
    rates = [rate for one in comparisons for side in one.sides for rate in one.rates(side)]
    return (1.0,) if max(rates) > 30 * min(rates) else (1.0, 2.0, 5.0)


def _tick(value: float) -> str:
    """Return a round number without needless digits: 2 M, 500 K."""
    unit, name = next((unit, name) for unit, name in _UNITS if value >= unit or unit == 1.0)
    return f"{value / unit:g}{name}"


def _readable(svg: str, title: str, description: str) -> str:
    """Return an SVG with its colours, title and description."""
    style = f":root{{{_variables(LIGHT)}}}@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
    head, _, rest = svg.partition(">")
    texts = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    return f'{head} role="img">{texts}<style>{style}</style>{_GROUND}{rest}'


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())
