"""Runs every benchmark: `python -m bench [--quick]`."""

from bench import kernels, sql, streaming


def main() -> None:
    """Run all; each prints and records its own table."""
    for benchmark in (kernels, sql, streaming):
        benchmark.main()


if __name__ == "__main__":
    main()
