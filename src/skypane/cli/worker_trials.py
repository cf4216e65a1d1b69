"""The results of `skypane simulate`, one for each number of workers, and their plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_PANELS = (("rho", "utilisation"), ("sigma", "partitions per pane"), ("latency", "latency of a pane (s)"))


class WorkerTrial(NamedTuple):
    """Means for a number of pane-level workers (`latency` in seconds), and `backlog` and `waiting` at the end."""

    workers: int
    rho: float
    sigma: float
    selected: float
    latency: float
    window_rho: float
    backlog: int
    waiting: int


def draw(tried: Sequence[WorkerTrial], enough: int | None, file: Path) -> None:
    """Write the plot of utilisation, splitting and latency by workers, in the format of the file's extension.

    enough  n*, the smallest number of workers that keeps up, which is marked; None if none does
    """
    import matplotlib as mpl  # noqa: PLC0415 - in the extra `cli`
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "skypane", "axes.grid": True, "grid.color": "0.9"}):
        canvas = Figure(figsize=(5.2, 6.4), layout="constrained")
        panels = canvas.subplots(len(_PANELS), sharex=True)
        for axes, (name, label) in zip(panels, _PANELS, strict=True):
            axes.plot([one.workers for one in tried], [getattr(one, name) for one in tried], marker=".")
            axes.set(ylabel=label, ylim=(0, None))
            if enough is not None:
                axes.axvline(enough, color="0.4", linestyle="--", linewidth=1)
        panels[0].axhline(1, color="0.4", linewidth=1)
        panels[0].set_title("does not keep up" if enough is None else f"n* = {enough}")
        panels[-1].set_xlabel("pane-level workers")
        canvas.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
