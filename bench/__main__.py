"""Runs every benchmark: `python -m bench [--quick]`."""

import bench.aggregates
import bench.columns
import bench.continuous
import bench.continuous_stream
import bench.groups
import bench.kernels
import bench.latency
import bench.replay
import bench.slides
import bench.sql
import bench.streaming


def main() -> None:
    """Run all; each prints and records its own table."""
    for module in (
        bench.kernels,
        bench.continuous,
        bench.continuous_stream,
        bench.replay,
        bench.sql,
        bench.streaming,
        bench.slides,
        bench.groups,
        bench.latency,
        bench.columns,
        bench.aggregates,
    ):
        module.main()


if __name__ == "__main__":
    main()
