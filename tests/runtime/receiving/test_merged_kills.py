"""Receivers that merge by time, killed while clients send."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.runtime.receiving.logs import lines, receiver, until
from tests.runtime.receiving.test_tcp import sent
from tests.servers.ports import free_ports

from skypane.runtime.receiving.merge_commit import MERGED, REJECTED
from skypane.runtime.receiving.receiver import Receiver

NAMES = ("a", "b", "c")
ENOUGH = (400, 1_500, 3_000)
"""Lines of an input that are acknowledged before the first kill, before the second, and in the end."""


def _accepted(log: Path) -> tuple[list[int], list[int]]:
    """Return the times of an input's log that are in order, and, of each that is not, how many that are come before it.

    Those that are not were sent again.
    """
    kept, again = list[int](), list[int]()
    for time in (json.loads(line)["t"] for line in lines(log)):
        if not kept or time >= kept[-1]:
            kept.append(time)
        else:
            again.append(len(kept))
    return kept, again


def test_what_was_acknowledged_is_merged_once_and_in_order_over_kills(tmp_path):
    ports = dict(zip(NAMES, free_ports(len(NAMES)), strict=True))
    inputs = [{"name": name, "listen": f"127.0.0.1:{port}", "acknowledge": True} for name, port in ports.items()]
    folder = tmp_path / "received"
    given = {"folder": str(folder), "segment_bytes": 8_192, "order": "by time", "time": "t", "time_unit": "second",
             "idle_after": "1 day", "inputs": inputs}  # fmt: skip
    safe = dict.fromkeys(NAMES, 0)

    def send(enough: int) -> None:
        def send_of(name: str) -> int:
            return sent(ports[name], safe[name], enough, lambda at: b'{"t": %d}\n' % at)

        with ThreadPoolExecutor() as pool:
            safe.update(zip(NAMES, pool.map(send_of, NAMES), strict=True))

    for enough in ENOUGH[:-1]:
        with receiver(given, tmp_path) as process:
            send(enough)
            until(lambda: len(lines(folder / MERGED)) > 0, "nothing is merged")
            process.kill()
            process.wait()
    with Receiver(given) as receiving:
        send(ENOUGH[-1])
    assert receiving.merged is not None
    assert receiving.merged.reason == ""
    accepted = {name: _accepted(folder / name) for name in NAMES}
    newest = [(times[-1], number) for number, (times, _) in enumerate(accepted.values())]
    everything = sorted((time, number) for number, (times, _) in enumerate(accepted.values()) for time in times)
    merged = [json.loads(line)["t"] for line in lines(folder / MERGED)]
    assert merged == [time for time, number in everything if (time, number) <= min(newest)]
    for name, (times, _) in accepted.items():
        assert set(range(safe[name])) <= set(times)
    rejected = [json.loads(line) for line in lines(folder / REJECTED)]
    assert {row["reason"] for row in rejected} <= {"out of order"}
    for number, (name, (times, again)) in enumerate(accepted.items()):
        done = sum((time, number) <= min(newest) for time in times)  # what comes behind waits for the others with them
        assert sum(row["input"] == name for row in rejected) == sum(before <= done for before in again)
