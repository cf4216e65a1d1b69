"""Draw all plates into a folder, and put them with their texts into its workloads.md.

python -m skypane.experiments.workload_gallery docs
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from skypane.experiments.workload_gallery import arrivals, content, disorder
from skypane.experiments.workload_gallery.plate import Plate
from skypane.types import ConfigError

BEGIN, END = "<!-- gallery -->", "<!-- /gallery -->"


def plates() -> list[Plate]:
    """Return all plates, in the order of the page."""
    return [*arrivals.plates(), *disorder.plates(), *content.plates()]


def section(drawn: Sequence[tuple[Plate, Path]]) -> str:
    """Return the part of the page that shows the plates."""
    shown = (f"### {plate.title}\n\n{plate.text}\n\n![{plate.title}]({path.name})\n" for plate, path in drawn)
    return "\n".join(shown)


def between(page: str, text: str) -> str:
    """Return the page with `text` between the marks; ConfigError if it lacks them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ConfigError(f"the page lacks the marks {BEGIN} and {END}, between which the plates go")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def main(folder: Path) -> None:
    """Write the figures and the page."""
    page = folder / "workloads.md"
    made = [(plate, plate.write(folder)) for plate in plates()]
    page.write_text(between(page.read_text(encoding="utf-8"), section(made)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
