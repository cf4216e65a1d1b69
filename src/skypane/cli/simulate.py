"""`skypane simulate`: simulate both stages of a query in virtual time to find how many workers a stream needs."""

from __future__ import annotations

import math
from argparse import REMAINDER, ArgumentParser, Namespace, _SubParsersAction
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from skypane.cli.output import say
from skypane.cli.worker_trials import WorkerTrial, draw
from skypane.types import ConfigError

if TYPE_CHECKING:
    from skypane.runtime.sim.cost_models import CostModel
    from skypane.runtime.sim.simulated_stream import SimulatedStream
    from skypane.windows import Windows

_USAGE = "skypane simulate [options] WORKLOAD [--parameter value ...]"
_COLUMNS = "  n    rho  sigma  selected/pane     backlog  latency  window rho  waiting  keeps up"


def add_parser(commands: _SubParsersAction[ArgumentParser]) -> ArgumentParser:
    """Add the command's parser and return it."""
    parser = commands.add_parser(
        "simulate",
        usage=_USAGE,
        help="simulate a stream on 1 to N workers to find how many it needs",
        description="The workload and its parameters are those of `skypane generate`.",
    )
    parser.add_argument("--workers", default="1..16", metavar="A..B", help="range of pane-level workers to try (1..16)")
    parser.add_argument("--window-workers", type=int, default=4, metavar="M", help="number of window-level workers (4)")
    parser.add_argument("--splitting", default="AS_PID", help="splitting policy: PB_RR, TB_RR, AS or AS_PID (AS_PID)")
    parser.add_argument(
        "--scheduling", default="WIN_FB_MERGE", help="scheduling policy: WIN_RR, WIN_FB or WIN_FB_MERGE (WIN_FB_MERGE)"
    )
    parser.add_argument(
        "--costs", choices=("kernels", "papers"), default="kernels", help="cost model of a tuple (kernels)"
    )
    parser.add_argument(
        "--row-seconds",
        type=float,
        metavar="S",
        help="seconds that a row takes a worker, such as 4e-6: of a run sum(metrics.busy) / metrics.rows, instead of the 1e-6 of --costs kernels",
    )
    parser.add_argument(
        "--results",
        choices=("fitted", "exact"),
        default="fitted",
        help="result sizes: from a curve fitted to --points and --d, or computed from the points, slower (fitted)",
    )
    parser.add_argument(
        "--queue",
        type=int,
        metavar="N",
        help="capacity of a worker's queue; the source waits while it is full (unbounded)",
    )
    parser.add_argument("--window", default="1 second", help="length of a window (1 second)")
    parser.add_argument("--slide", default=None, help="distance between the starts of windows (the window's length)")
    parser.add_argument(
        "--slack", default="0 seconds", help="how far the punctuation lies behind the newest event time (0 seconds)"
    )
    parser.add_argument("--sampling", type=float, default=1.0, metavar="T", help="seconds between measurements (1)")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the stream in event time (60)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random numbers (0)")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw rho, sigma and latency over the workers (.svg, .png)"
    )
    parser.add_argument("workload", help="name of the workload, as in `skypane generate`")
    parser.add_argument(
        "parameters", nargs=REMAINDER, help="parameters of the workload, such as --rate 100000 --dispersion 6000"
    )
    return parser


def run(arguments: Namespace) -> int:
    """Print one line per number of workers; return 1 if none keeps up."""
    from skypane.cli.generate import pairs  # noqa: PLC0415
    from skypane.windows import Windows  # noqa: PLC0415

    first, last = _range(arguments.workers)
    windows = Windows.of(arguments.window, arguments.slide)
    parameters = pairs(arguments.parameters)
    stream = _stream(arguments, parameters, windows)
    cost = _cost(arguments, parameters)
    say(f"{len(stream.arrival):,} tuples in {stream.arrival[-1]:.0f} s, {stream.panes} panes, {arguments.splitting}")
    say(_COLUMNS)
    tried: list[WorkerTrial] = []
    for workers in range(first, last + 1):
        tried.append(_simulated(arguments, stream, windows, cost, workers))
        say(_line(tried[-1]))
    enough = next((one.workers for one in tried if one.rho < 1), None)
    say(f"{enough} pane-level workers are enough" if enough else f"{last} pane-level workers are not enough")
    if arguments.plot is not None:
        draw(tried, enough, arguments.plot)
        say(f"plot written to {arguments.plot}")
    return 0 if enough else 1


def _range(text: str) -> tuple[int, int]:
    first, dots, last = text.partition("..")
    try:
        bounds = int(first), int(last if dots else first)
    except ValueError:
        raise ConfigError(f"--workers must be a range such as 1..16 or one number, got {text!r}") from None
    if not 1 <= bounds[0] <= bounds[1]:
        raise ConfigError(f"--workers A..B must have 1 <= A <= B, got {text!r}")
    return bounds


def _cost(arguments: Namespace, parameters: dict[str, str]) -> CostModel:
    """Return the cost model, with the result sizes of the workload's points; by default independent ones with d = 8."""
    # This import compiles kernels.
    from skypane.runtime.sim.cost_models import BLOCK_NESTED_LOOPS, KERNELS, fitted_size  # noqa: PLC0415

    cost = KERNELS if arguments.costs == "kernels" else BLOCK_NESTED_LOOPS
    if arguments.row_seconds is not None:
        if not 0 < arguments.row_seconds < math.inf:
            raise ConfigError(f"--row-seconds must be a number above 0, got {arguments.row_seconds}")
        if arguments.costs != "kernels":
            raise ConfigError(
                f"--row-seconds goes with --costs kernels, not with --costs {arguments.costs}; leave one out"
            )
        cost = replace(cost, tuple_base=arguments.row_seconds)
    if arguments.results == "exact" or not {"d", "points"} & set(parameters):
        return cost
    return replace(cost, size=fitted_size(parameters.get("points", "independent"), int(parameters.get("d", "8"))))


def _stream(arguments: Namespace, parameters: dict[str, str], windows: Windows) -> SimulatedStream:
    import numpy as np  # noqa: PLC0415

    from skypane.runtime.sim.simulated_stream import SimulatedStream  # noqa: PLC0415
    from skypane.types import micros  # noqa: PLC0415
    from skypane.workloads.registry import composed  # noqa: PLC0415

    exact = arguments.results == "exact"
    parameters = {"d": "8" if exact else "1"} | (parameters if exact else parameters | {"d": "1"})
    length = timedelta(seconds=arguments.seconds)
    table = composed(arguments.workload, **parameters, length=length, seed=arguments.seed, start=0).table()
    event, arrival = (table[name].cast("int64").to_numpy() for name in ("time", "arrival"))
    criteria = [name for name in table.column_names if exact and name[0] == "c" and name[1:].isdigit()]
    points = np.column_stack([table[name].to_numpy() for name in criteria]) if criteria else None
    return SimulatedStream.of(windows, event, arrival, micros(arguments.slack, "slack"), points)


def _simulated(
    arguments: Namespace, stream: SimulatedStream, windows: Windows, cost: CostModel, workers: int
) -> WorkerTrial:
    """Return the means over the second half of the stream, when the splitting policy has settled."""
    import numpy as np  # noqa: PLC0415

    from skypane.control.parallelism import Workers  # noqa: PLC0415
    from skypane.control.splitting import splitting  # noqa: PLC0415
    from skypane.runtime.sim.simulation import SimulationSetup, simulate  # noqa: PLC0415

    setup = SimulationSetup(
        stream,
        windows,
        cost,
        splitting(arguments.splitting),
        Workers(workers, arguments.window_workers),
        arguments.scheduling,
        sampling=arguments.sampling,
        room=arguments.queue,
    )
    shown = list(simulate(setup))
    half = shown[len(shown) // 2 :]

    def mean(name: str) -> float:
        values = np.array([getattr(sampled, name) for sampled in half])
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else float("nan")

    return WorkerTrial(
        workers,
        rho=mean("rho_plq"),
        sigma=mean("sigma"),
        selected=mean("selected"),
        latency=mean("latency"),
        window_rho=mean("rho_wlq"),
        backlog=shown[-1].backlog,
        waiting=shown[-1].waiting,
    )


def _line(tried: WorkerTrial) -> str:
    return (
        f"{tried.workers:3d} {tried.rho:6.2f} {tried.sigma:6.2f} {tried.selected:14.0f} {tried.backlog:11,d} "
        f"{tried.latency:8.2f} {tried.window_rho:11.2f} {tried.waiting:8,d}  {'yes' if tried.rho < 1 else 'no'}"
    )
