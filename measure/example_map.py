"""The map of a shipped example as a picture for docs/: a figure of its report in light colours.

skypane run cab-areas --drain && python -m measure.example_map cab-areas mean_speed docs/cab-areas-speed.svg
"""

from __future__ import annotations

import argparse
import re
from importlib import resources
from pathlib import Path

from skypane.jobs import examples
from skypane.reporting import maps
from skypane.reporting.grids import grid_map
from skypane.reporting.snapshot import answers


def main() -> None:
    """Draw the answers that the example has written into the working folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("example")
    parser.add_argument("column")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    job = examples.find(arguments.example)
    windows = answers(Path(str(job.each_query[0].output.path)))
    if job.map is None or windows is None or (grid := grid_map(windows, job.map.build())) is None:
        raise SystemExit(f"{arguments.example} has no map, or has not written answers here")
    page = resources.files("skypane.reporting").joinpath("report.html").read_text(encoding="utf-8")
    light = dict(re.findall(r"(--[\w-]+): (#\w+);", page.partition("@media")[0]))
    svg = re.sub(r"var\((--[\w-]+)\)", lambda found: light[found[1]], maps.shaded(grid, arguments.column))
    paper = f'<rect width="100%" height="100%" fill="{light["--paper"]}"/>'
    arguments.out.write_text(re.sub(r"(<svg[^>]*>)", rf"\1{paper}", svg, count=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
