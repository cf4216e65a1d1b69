"""A driver of a stream in a bucket, as a program: python -m tests.stores.process_driver SCENARIO FOLDER ROWS_SEED SEED."""

from __future__ import annotations

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


def main(scenario: str, folder: str, rows_seed: str, seed: str) -> int:
    try:
        drive(stream(scenario, Path(folder), int(rows_seed)), random.Random(int(seed)))
    except CheckpointError as error:
        traceback.print_exc()
        return TAKEN_OVER if "taken it over" in str(error) else WRONG
    return DONE


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
