"""Runs every benchmark: `python -m bench [--quick]`."""

import bench.continuous
import bench.kernels
import bench.replay
import bench.sql
import bench.streaming


def main() -> None:
    """Run all; each prints and records its own table."""
    for main_of in (bench.kernels.main, bench.continuous.main, bench.replay.main, bench.sql.main, bench.streaming.main):
        main_of()


if __name__ == "__main__":
    main()
