"""Run by test_patient_start as a process of its own: a stream whose Python process is late when it starts for the first time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_LATE = """#!/bin/bash
if [[ "$*" == *python_streaming_source_runner* ]] && mkdir {folder}/was-late 2>/dev/null; then read < {folder}/end; exit 1; fi
exec {python} "$@"
"""


def main(folder: Path) -> None:
    os.mkfifo(folder / "end")
    python = folder / "python"
    python.write_text(_LATE.format(folder=folder, python=sys.executable))
    python.chmod(0o755)
    os.environ["PYSPARK_PYTHON"] = str(python)
    import skypane as sp  # noqa: PLC0415 - with the workers' Python

    (folder / "rows.json").write_text('{"ts": "2026-01-01T00:00:00Z", "price": 3.0}\n')
    rows = sp.inputs(sp.session("local[1]"), [{"path": str(folder / "rows.json")}], "ts timestamp, price double")
    output = sp.Memory()
    job = sp.stream(rows, "price MIN", time="ts", window="10 seconds", checkpoint=str(folder / "state"), output=output)
    handle = job.start(trigger="availableNow")
    handle.await_termination()
    handle.drain()
    print(output.table()["price"].to_pylist())
    os.write(os.open(folder / "end", os.O_RDWR), b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
