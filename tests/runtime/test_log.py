"""What a session of ours prints when a stream fails: why, once."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from pathlib import Path
import pyarrow as pa
import pyarrow.parquet as pq
import skypane as sp
from skypane.runtime.spark.sources.replay import replay

path = Path(sys.argv[1])
pq.write_table(pa.table({"row": range(40_000)}), path, compression="none", use_dictionary=False)
content = bytearray(path.read_bytes())
content[4:50_000] = bytes(49_996)
path.write_bytes(content)
query = replay(sp.session("local[2]"), path, partitions=1).writeStream.format("noop").start()
try:
    query.awaitTermination()
except Exception:
    print("failed")
"""


@pytest.mark.slow
def test_a_replay_that_fails_reports_the_reason_once(tmp_path):
    path = tmp_path / "rows.parquet"
    command = [sys.executable, "-c", SCRIPT, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout == "failed\n"
    lines = done.stderr.splitlines()
    assert sum(f"ConfigError: cannot read rows 0 to 40000 of {path}: " in line for line in lines) == 1
    assert sum("terminated with error" in line for line in lines) == 1
    assert len(lines) < 10
