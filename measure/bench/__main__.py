"""Run every benchmark: `python -m measure.bench [--quick]`."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

KINDS: Final = {"many_keys": ("batch", "stream", "native-stream")}
"""What a benchmark is to be told, a run each, of those that measure several things."""


def every() -> Iterator[str]:
    """Yield the names of the modules here that have something to run."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file != Path(__file__) and "\ndef main(" in file.read_text(encoding="utf-8"):
            yield file.stem


def main() -> None:
    """Run all; each prints and records its own table."""
    command, *given = sys.argv
    for name in every():
        for kind in KINDS.get(name, ("",)):
            sys.argv = [command, *([kind] if kind else []), *given]
            import_module(f"{__package__}.{name}").main()


if __name__ == "__main__":
    main()
