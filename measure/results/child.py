"""Run one benchmark in this process and write what it returns: `python -m measure.results.child MODULE FILE [ARGUMENT ...]`.

The process and those that it starts use no more than two cores, whatever the machine has.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from measure.results.machine import CORES
from measure.results.record import to_json


def use_few_cores() -> None:
    """Let this process and those that it starts run on the first two cores only, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def main(given: Sequence[str]) -> None:
    """Call a module's own main with the arguments; write the tables and comparisons that it returns."""
    module, file, *arguments = given
    use_few_cores()
    found = import_module(module).main(arguments)
    Path(file).write_text(json.dumps(to_json(found)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
