"""The functions that receive the metrics of each committed batch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeAlias

from skypane.metrics import BatchMetrics

log = logging.getLogger(__name__)

Listener: TypeAlias = Callable[[BatchMetrics], None]


class BatchListeners:
    """Calls each of its listeners, in the order in which they were added; any thread may add or remove one."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = list(listeners)

    def __bool__(self) -> bool:
        """Return whether anything listens."""
        return bool(self._listeners)

    def add(self, listener: Listener) -> None:
        """Call `listener` with the metrics of each batch that is committed from now on."""
        self._listeners.append(listener)

    def remove(self, listener: Listener) -> None:
        """Call `listener` no more; a batch that is being passed on may still reach it."""
        self._listeners.remove(listener)

    def __call__(self, metrics: BatchMetrics) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(metrics)
            except Exception:  # the batch is already committed, so an error of a listener must not fail it
                log.exception("a listener failed on the metrics of batch %d", metrics.batch_id)
