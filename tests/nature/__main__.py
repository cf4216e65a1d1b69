"""Kill, freeze and starve streams on a real Spark, and hold them to what docs/reliability.md promises: python -m tests.nature."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
from pathlib import Path

from tests.nature.campaign import ROUND, at_places, campaign, side_by_side
from tests.nature.scenarios import SCENARIOS
from tests.nature.tally import table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nature", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="processes to kill, at least")
    parser.add_argument("--each", type=int, default=ROUND, help="kills of one stream, before another begins")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="campaigns side by side; each takes a core or two")
    parser.add_argument(
        "--scenario", action="append", choices=[*SCENARIOS], help="given more than once, several; else all"
    )
    parser.add_argument(
        "--places", type=int, help="instead: drivers to kill while each stream is at a place of a batch"
    )
    parser.add_argument("--takeovers", type=int, default=2, help="and drivers to take over from there")
    parser.add_argument("--drains", type=int, default=3, help="and drivers to kill in drains")
    parser.add_argument("--logs", type=Path, help="where logs, and streams that went wrong, are kept")
    arguments = parser.parse_args()
    logs = arguments.logs or Path(tempfile.mkdtemp(prefix="skypane-nature-logs-"))
    logs.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, filename=logs / "nature.log", force=True
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("requested to end"))  # what was mounted and started ends, too
    names = arguments.scenario or [*SCENARIOS]
    if arguments.places is not None:
        tallies = at_places(names, arguments.seed, logs, arguments.places, arguments.takeovers, arguments.drains)
    elif arguments.jobs > 1:
        tallies = side_by_side(names, arguments.kills, arguments.seed, logs, arguments.each, arguments.jobs)
    else:
        tallies = campaign(names, arguments.kills, arguments.seed, logs, arguments.each)
    print(f"seed {arguments.seed}, logs in {logs}\n\n{table(tallies)}")
    return int(any(tally.wrong or tally.unexplained for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
