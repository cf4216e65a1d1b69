"""Runs every benchmark: `python -m bench [--quick]`."""

import bench.continuous
import bench.kernels
import bench.replay
import bench.slides
import bench.sql
import bench.streaming


def main() -> None:
    """Run all; each prints and records its own table."""
    for module in (bench.kernels, bench.continuous, bench.replay, bench.sql, bench.streaming, bench.slides):
        module.main()


if __name__ == "__main__":
    main()
