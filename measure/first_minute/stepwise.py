"""Run a program statement by statement, and write when each one has ended.

    python measure/first_minute/stepwise.py PROGRAM FILE BEGAN

BEGAN is the time of the monotonic clock at which the process was started: the start of Python counts, too. FILE receives
JSON: for each statement its text, and the seconds and CPU seconds since then, of this process and all that it has started.
It runs where nothing but skypane is installed, and imports no more of this checkout than it needs.
"""

from __future__ import annotations

import ast
import json
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))

from measure.processes import cpu_seconds


def main(program: Path, file: Path, began: float) -> None:
    """Run the program as `__main__`."""
    source, space = program.read_text(encoding="utf-8"), {"__name__": "__main__"}
    found = []
    for statement in ast.parse(source).body:
        exec(compile(ast.Module([statement], []), str(program), "exec"), space)  # noqa: S102
        found.append([ast.get_source_segment(source, statement), time.monotonic() - began, cpu_seconds()])
    file.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
