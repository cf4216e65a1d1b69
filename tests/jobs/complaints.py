"""Tables of what is wrong in a job file, as a user would write and read it."""

from __future__ import annotations


def table_of(text: str) -> list[tuple[str, str]]:
    """Return pairs of a line of YAML and the complaint about it, which is the line below, indented."""
    lines = text.strip().splitlines()
    assert all(line.startswith("  ") for line in lines[1::2])
    return [(wrong, complaint.strip()) for wrong, complaint in zip(lines[::2], lines[1::2], strict=True)]
