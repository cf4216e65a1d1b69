"""What plots show: read off the axes, not off pixels."""

import numpy as np
import pytest
from matplotlib import dates
from matplotlib.figure import Figure

from skypane.describing import pictures
from skypane.describing.columns import RecordedStream

SECOND = 1_000_000
IN_2024 = 1_714_521_600 * SECOND


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are written, after they were."""
    figures = []
    save = Figure.savefig

    def kept(figure, *args, **kwargs):
        figures.append(figure)
        return save(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", kept)
    return figures


def stream(rng, start, seconds=100_000):
    arrival = start + np.sort(rng.integers(0, seconds * SECOND, 5_000))
    return RecordedStream(arrival - rng.integers(0, 30 * SECOND, 5_000), arrival)


@pytest.mark.long
def test_times_are_dates_where_the_stream_has_dates(drawn, tmp_path):
    rng = np.random.default_rng(1)
    for start in (IN_2024, 0):
        pictures.draw(stream(rng, start), tmp_path / "plot.svg", "a stream")
    with_dates, without = (figure.axes[0] for figure in drawn)
    assert isinstance(with_dates.xaxis.get_major_formatter(), dates.ConciseDateFormatter)
    assert dates.num2date(with_dates.get_xlim()[0]).year == 2024
    assert without.get_xlabel() == "seconds since the first"
    assert without.get_xlim()[0] == 0


@pytest.mark.long
def test_delays_that_cannot_be_negative_have_no_axis_below_zero(drawn, tmp_path):
    late = stream(np.random.default_rng(1), IN_2024)
    assert late.arrival is not None
    pictures.draw(late, tmp_path / "plot.svg", "late only")
    pictures.draw(RecordedStream(late.event + 10 * SECOND, late.arrival), tmp_path / "plot.svg", "early too")
    late_only, early_too = (figure.axes[1].get_xlim()[0] for figure in drawn)
    assert late_only == 0
    assert early_too < 0


def test_a_long_stream_is_drawn_in_slots_that_can_be_seen(drawn, tmp_path):
    series = np.zeros(1_000_000, np.int64)
    series[500_000] = 6_000
    pictures.draw_counts(series, tmp_path / "plot.svg", "one burst")
    values, edges, _ = drawn[0].axes[0].patches[0].get_data()
    assert len(values) <= 300
    assert (values * np.diff(edges)).sum() == pytest.approx(6_000)
    assert drawn[0].axes[0].patches[0].get_linewidth() > 0
    assert (tmp_path / "plot.svg").stat().st_size < 100_000


@pytest.mark.long
@pytest.mark.parametrize("title", ["<script>", "a & b", "$x", "t" * 10_000])
@pytest.mark.parametrize("kind", ["html", "svg"])
def test_a_title_is_text_whatever_it_holds(tmp_path, title, kind):
    path = tmp_path / f"plot.{kind}"
    pictures.draw_counts(np.arange(100), path, title)
    assert "<script>" not in path.read_text()
