"""Drivers of streams in a bucket, forked as tests/runtime/forked.py does: the argument is scenario, folder and two seeds, in JSON."""

from __future__ import annotations

import json
import random
import sys
import traceback
from pathlib import Path

from tests.chaos.bombs import DONE, TAKEN_OVER, WRONG
from tests.chaos.driver import drive
from tests.chaos.naive import rows
from tests.stores.streams import BucketStream

from skypane.types import CheckpointError

BATCHES = 4


def stream(scenario: str, folder: Path, rows_seed: int) -> BucketStream:
    """Return the stream that these arguments name."""
    return BucketStream(scenario, folder, rows(rows_seed, BATCHES), rows_seed % 3, rows_seed % 4 - 1)


def main() -> None:
    scenario, folder, rows_seed, seed = json.loads(sys.argv[1])
    try:
        drive(stream(scenario, Path(folder), rows_seed), random.Random(seed))
    except CheckpointError as error:
        traceback.print_exc()
        sys.exit(TAKEN_OVER if "taken it over" in str(error) else WRONG)
    sys.exit(DONE)
