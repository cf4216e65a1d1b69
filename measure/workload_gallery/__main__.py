"""Draw all plates into a folder, and put them with their texts into workloads.md in that folder.

python -m measure.workload_gallery docs
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from measure.tables import replace_between
from measure.workload_gallery import arrivals, content, disorder
from measure.workload_gallery.plate import Plate


def plates() -> list[Plate]:
    """Return all plates, in the order of the page."""
    return [*arrivals.plates(), *disorder.plates(), *content.plates()]


def section(drawn: Sequence[tuple[Plate, Path]]) -> str:
    """Return the part of the page that shows the plates."""
    shown = (f"### {plate.title}\n\n{plate.text}\n\n![{plate.title}]({path.name})\n" for plate, path in drawn)
    return "\n".join(shown)


def main(folder: Path) -> None:
    """Write the figures and the page."""
    made = [(plate, plate.write(folder)) for plate in plates()]
    replace_between(folder / "workloads.md", "gallery", section(made))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
