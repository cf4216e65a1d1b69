"""Kills that go off beside a server of Spark Connect, in the process that runs the function of foreachBatch."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, Final

from skypane.runtime.spark.sinks.directory import Directory
from skypane.testing.kills import Bomb

VICTIMS: Final = ("process", "server", "client")
_MODULE = "foreach_batch_worker"


@dataclass(frozen=True)
class BombBeside(Bomb):
    """A bomb in the process beside the server; its victim is that process, the server, or the client of this process id."""

    victim: str = "process"
    client: int = 0

    def go_off(self) -> None:
        # The server is the parent of the process: without a daemon between them, see skypane's server_watch.
        processes = {"process": os.getpid(), "server": os.getppid(), "client": self.client}
        os.kill(processes[self.victim], self.signal)


@dataclass(frozen=True)
class Bombed(Directory):
    """A folder of answers; where it arrives beside a server, its bomb is laid."""

    bomb: BombBeside | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.path, self.holds, self.bomb)


def _arrived(path: str, holds: str, bomb: BombBeside | None) -> Bombed:
    if bomb is not None and _is_beside_server():
        bomb.lay()
    return Bombed(path, holds=holds)


def _is_beside_server() -> bool:
    spec = sys.modules["__main__"].__spec__
    return spec is not None and spec.name.endswith(_MODULE)
