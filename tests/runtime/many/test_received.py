"""From sockets to answers: what receivers write is read by a query, which is stopped, seen from outside, and goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.runtime.receiving.logs import until
from tests.runtime.receiving.test_tcp import dialled
from tests.servers.ports import free_ports

import skypane as sp
from skypane.cli.main import main
from skypane.jobs import building
from skypane.jobs.reading import parse
from skypane.runtime.receiving.receiver import Receiver

TOWNS = ("basel", "bern", "chur", "liar")


def offer(town: str, minute: int) -> str:
    """Return a row; the liar's clock is thirty years ahead."""
    year = 2056 if town == "liar" else 2026
    return json.dumps({"ts": f"{year}-01-01T08:{minute:02}:00Z", "price": 20.0 + minute % 7, "rating": minute % 5})


def send(ports: dict[str, int], minutes: range) -> None:
    for town, port in ports.items():
        with dialled(port) as connection:
            connection.sendall("".join(f"{offer(town, minute)}\n" for minute in minutes).encode())
            if town == "bern" and 0 in minutes:
                connection.sendall(b'null\nno json\n{"ts": "2026-01-01T08:00:00Z", "price": "much"}\n')
                # columns come and go
                connection.sendall(b'{"ts": "2026-01-01T08:01:00Z", "price": 1.0, "rating": 4.0, "colour": "red"}\n')


def job_text(folder: Path) -> str:
    listing = folder / "inputs.json"
    listing.write_text(json.dumps([{"segments": f"{folder}/received/*"}]))
    return yaml.safe_dump({
        "name": "towns",
        "source": {"format": "skypane-many", "schema": "ts timestamp, price double, rating double, input string",
                   "options": {"inputs": str(listing), "readers": 2, "rowsPerTrigger": 60}},
        "query": {"kind": "skyline", "preference": "price MIN, rating MAX"},
        "window": {"time": "ts", "length": "10 minutes"},
        "progress": {"policy": "readiness", "idle_after": "1 hour"},
        "source_column": "input",
        "output": {"format": "parquet", "path": str(folder / "answers")},
        "checkpoint": str(folder / "state"),
    })  # fmt: skip


@pytest.mark.slow
def test_what_sockets_send_is_answered_and_each_input_is_seen(spark, tmp_path, capsys):
    ports = dict(zip(TOWNS, free_ports(len(TOWNS)), strict=True))
    given = {"folder": str(tmp_path / "received"),
             "inputs": [{"name": town, "listen": f"127.0.0.1:{port}"} for town, port in ports.items()]}  # fmt: skip
    text = job_text(tmp_path)
    metrics: list[sp.BatchMetrics] = []

    def run() -> sp.StreamHandle:
        ready = building.build(parse(text), spark)
        assert isinstance(ready, sp.Job)
        handle = ready.start(on_batch=metrics.append, trigger="available now")
        handle.await_termination()
        return handle

    with Receiver(given) as receiving:
        send(ports, range(30))
        until(lambda: sum(one.lines for one in receiving.seen) == 4 * 30 + 4, "lines are missing")
        handle = run()
        assert sum(batch.rows for batch in metrics) == 4 * 30 + 4
        assert sum(sum(batch.quarantined.values()) for batch in metrics) + metrics[-1].held_rows == 3 + 30
        table = {Path(row["input"]).name: row for row in handle.inputs().to_pylist()}
        assert set(table) == set(TOWNS)
        assert all(row["lag"] == 0 for row in table.values())
        assert {Path(one.input).name for one in metrics[-1].inputs} == set(TOWNS)
        send({"bern": ports["bern"]}, range(30, 50))
        until(lambda: sum(one.lines for one in receiving.seen) == 4 * 30 + 4 + 20, "lines are missing")
    (tmp_path / "job.yaml").write_text(text)
    assert main(["inputs", str(tmp_path / "job.yaml")]) == 0
    shown = {Path(line.split("\t")[0]).name: line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]}
    assert {town: (int(line[4]) > 0, line[6]) for town, line in shown.items()} == {
        town: (town == "bern", "behind" if town == "bern" else "read") for town in TOWNS
    }
    rows = sum(batch.rows for batch in metrics)
    run()
    assert sum(batch.rows for batch in metrics) == rows + 20
