"""A notebook's cell whose HTML is written again while something runs: by a display_id of Jupyter, without widgets."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, Final

from skypane.types import ConfigError

EVERY: Final = 1.0
"""Seconds between two updates."""


def show_until(ended: Callable[[], bool], html: Callable[[], str], text: Callable[[], str]) -> None:
    """Show the HTML in the cell that runs, return, and update it in the background until `ended` returns True.

    Where no kernel of a notebook runs, as in IPython on a terminal, the text is printed once. Raises ConfigError where
    IPython is not installed.
    """
    try:
        ipython: Any = importlib.import_module("IPython")
        jupyter: Any = importlib.import_module("IPython.display")
    except ModuleNotFoundError as error:
        raise ConfigError(
            "display() is for notebooks, which have IPython: elsewhere print the handle, or run `skypane top CHECKPOINT`"
        ) from error
    if getattr(ipython.get_ipython(), "kernel", None) is None:
        sys.stdout.write(f"{text()}\n")
        return
    cell = jupyter.display(jupyter.HTML(html()), display_id=True)
    Thread(target=lambda: _update(cell, jupyter.HTML, ended, html), name="skypane display", daemon=True).start()


def _update(cell: Any, as_html: Callable[[str], Any], ended: Callable[[], bool], html: Callable[[], str]) -> None:
    waiting = Event()
    last = False
    while not last:
        waiting.wait(EVERY)
        last = ended()  # before the HTML, so that it shows the end
        cell.update(as_html(html()))
