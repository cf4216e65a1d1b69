"""Say which programs of others are here for `make bench`, and build ours against WindFlow: `python -m measure.peers`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from measure.peers import papers_cpp, windflow
from measure.peers.places import MissingError

CRITERIA = (4, 8)


def findings() -> Iterator[tuple[str, Callable[[], Path]]]:
    """Yield the name of each program, and what finds or builds it."""
    yield "WindFlow, keyed windows", partial(windflow.program, "keyed_windows")
    for count in CRITERIA:
        skylines = partial(windflow.program, "group_skylines", {"CRITERIA": count})
        yield f"WindFlow, skylines of {count} criteria", skylines
        yield f"the C++ of paper 1, {count} criteria", partial(papers_cpp.program, count)


def main(say: Callable[[str], None] = print) -> int:
    """Print a line for each program; return 1 if any is missing."""
    missing = 0
    for name, found in findings():
        try:
            say(f"{name}: {found()}")
        except MissingError as error:
            missing += 1
            say(f"{name}: not here, {error}")
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
