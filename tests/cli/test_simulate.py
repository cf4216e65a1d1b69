from __future__ import annotations

from pathlib import Path

import pytest

from skypane.cli.main import main

STREAM = ["poisson", "--rate", "20000"]


def test_the_simulation_reports_how_many_workers_a_stream_needs(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """20K tuples/s in panes of 10K, which take about 63 us each: 1.3 worker-seconds a second."""
    options = [*"--workers 1..3 --splitting PB_RR --costs papers --seconds 12".split(), "--window", "500 ms"]
    plot = tmp_path / "cores.svg"
    assert main(["simulate", *options, "--plot", str(plot), *STREAM]) == 0
    head, columns, *lines, verdict, written = capsys.readouterr().out.splitlines()
    assert head.endswith("24 panes, PB_RR")
    assert columns.split()[:3] == ["n", "rho", "sigma"]
    assert [line.split()[0] for line in lines] == ["1", "2", "3"]
    assert [line.split()[-1] for line in lines] == ["no", "yes", "yes"]
    assert verdict == "2 pane-level workers are enough"
    latency = [float(line.split()[5]) for line in lines]
    assert latency[0] > latency[1] > 0.5, "a pane takes its length and more, and longer on an overloaded worker"
    assert written == f"plot written to {plot}"
    drawn = plot.read_text()
    assert all(word in drawn for word in ("utilisation", "partitions per pane", "latency of a pane (s)", "n* = 2"))


def test_the_simulation_reports_too_few_workers(capsys: pytest.CaptureFixture[str]):
    options = ["--workers", "1", "--splitting", "TB_RR", "--costs", "papers", "--window", "500 ms", "--seconds", "6"]
    assert main(["simulate", *options, *STREAM]) == 1
    assert capsys.readouterr().out.endswith("1 pane-level workers are not enough\n")


def test_results_are_those_of_the_points_that_are_requested(capsys: pytest.CaptureFixture[str]):
    """Fitted and exact alike, and more of four criteria than of two; a queue with little room holds tuples back."""
    options = ["--workers", "1", "--splitting", "TB_RR", "--window", "500 ms", "--seconds", "4", "--costs", "papers"]
    stream = ["poisson", "--rate", "4000", "--d"]
    selected, backlog = [], []
    for results, d in (("fitted", "2"), ("exact", "2"), ("fitted", "4"), ("exact", "4")):
        assert main(["simulate", *options, "--results", results, "--queue", "1", *stream, d]) == 0
        line = capsys.readouterr().out.splitlines()[2].split()
        selected.append(float(line[3]))
        backlog.append(int(line[4].replace(",", "")))
    assert selected[0] == pytest.approx(selected[1], rel=0.25)
    assert selected[2] == pytest.approx(selected[3], rel=0.2)
    assert selected[2] > 4 * selected[0]


@pytest.mark.parametrize(("options", "message"), [
    (["--queue", "0"], "room must be at least one tuple, got 0"),
    (["--workers", "3..1"], "--workers A..B must have 1 <= A <= B, got '3..1'"),
    (["--workers", "many"], "--workers must be a range such as 1..16 or one number, got 'many'"),
    (["--splitting", "AS_P"], "splitting must be one of PB_RR, TB_RR, AS, AS_PID, got 'AS_P'"),
    (["--scheduling", "FB"], "scheduling must be one of WIN_RR, WIN_FB, WIN_FB_MERGE, got 'FB'"),
    *((["--row-seconds", v], f"--row-seconds must be a number above 0, got {v}") for v in ("0.0", "-1.0", "nan", "inf")),
    (["--row-seconds", "1e-6", "--costs", "papers"],
     "--row-seconds goes with --costs kernels, not with --costs papers"),
])  # fmt: skip
def test_what_cannot_be_simulated_is_refused(options, message, capsys: pytest.CaptureFixture[str]):
    assert main(["simulate", "--seconds", "1", *options, *STREAM]) == 1
    assert message in capsys.readouterr().err


def test_the_seconds_of_a_row_may_be_those_of_a_run(capsys: pytest.CaptureFixture[str]):
    """20,000 tuples/s that take 75 us each: one and a half workers."""
    options = ["--workers", "1..2", "--splitting", "TB_RR", "--seconds", "12", "--row-seconds", "75e-6"]
    assert main(["simulate", *options, *STREAM]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()[2:4]]
    assert [float(line[1]) for line in lines] == pytest.approx([1.5, 0.75], rel=0.1)
    assert [line[-1] for line in lines] == ["no", "yes"]
