"""Table 5: every stream of table 3 with the top-delta query."""

from __future__ import annotations

from skypane_papers import all_streams
from skypane_papers.figure import Figure
from skypane_papers.paper5.table_4 import CLAIMS, PLOTS, REGIME, summary

FIGURE = Figure(
    title="all streams, top-delta query (delta = 100): n, m, sigma, extra time, CV of throughput",
    regime=f"{REGIME} A comparison costs a quarter more than the skyline's, fitted at one stream of the table. One seed.",
    measure=lambda quick: all_streams.rows("top_delta", quick=quick),
    traced=lambda quick, traces: all_streams.rows("top_delta", quick=quick, traces=traces),
    summary=summary,
    claims=CLAIMS,
    plots=PLOTS,
)
