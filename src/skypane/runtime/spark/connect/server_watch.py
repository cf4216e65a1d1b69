"""End a Python process beside the server together with the server.

A server that is killed leaves its Python processes. A call of theirs to the server is then repeated for ten minutes by
PySpark's client, and the process stays until these ten minutes have passed.
"""

from __future__ import annotations

import os
import time
from functools import cache
from threading import Thread
from typing import Final

_EVERY: Final = 1.0
"""Seconds between looks at the parent process."""


@cache
def end_with_server() -> None:
    """End this process, as a kill would, when its parent, the server, has ended; takes effect once."""
    Thread(target=_watch, args=(os.getppid(),), name="skypane server watch", daemon=True).start()


def _watch(server: int) -> None:
    while os.getppid() == server:
        time.sleep(_EVERY)
    os._exit(1)
