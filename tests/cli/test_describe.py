"""A table of figures, plots on demand; what cannot be read is reported in one sentence."""

import re
import shlex
import xml.etree.ElementTree as ET

import pyarrow.parquet as pq
import pytest

from skypane.cli.main import main
from skypane.workloads import workload

pytestmark = pytest.mark.usefixtures("wide_terminal")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("describe") / "made.parquet"
    made = workload("on-off", rate=500, delay="exponential", delay_mean="1 second", d=2, sources=3, rows=20_000)
    pq.write_table(made.table(), path)
    return path


def test_the_table_has_all_topics(file, capsys):
    roles = ["--time", "time", "--arrival", "arrival", "--source", "source", "--key", "key"]
    assert main(["describe", str(file), *roles, "--criteria", "c0 MIN, c1 MAX"]) == 0
    shown = capsys.readouterr().out
    for name in ("20,000", "mean rate", "index of dispersion", "late share", "Zipf exponent", "skyline share"):
        assert name in shown


@pytest.mark.long
@pytest.mark.parametrize("kind", ["svg", "html"])
def test_plots(file, tmp_path, kind):
    plot = tmp_path / f"plot.{kind}"
    assert main(["describe", str(file), "--time", "time", "--arrival", "arrival", "--plot", str(plot)]) == 0
    text = plot.read_text()
    ET.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])  # noqa: S314 - our own
    assert plot.stat().st_size < 150_000


@pytest.mark.long
@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("PDF", b"%PDF")])
def test_plots_that_are_not_text(file, tmp_path, kind, begins):
    plot = tmp_path / f"plot.{kind}"
    assert main(["describe", str(file), "--time", "time", "--plot", str(plot)]) == 0
    assert plot.read_bytes().startswith(begins)


def test_whole_numbers_are_read_in_their_unit(tmp_path, capsys):
    path = tmp_path / "seconds.csv"
    path.write_text("at\n" + "".join(f"{1_700_000_000 + row // 41}\n" for row in range(20_000)))
    assert main(["describe", str(path), "--time", "at"]) == 0
    warning = "1970 to 1970 are unlikely: whole numbers are read as microseconds; --unit s gives 2023"
    assert warning in capsys.readouterr().out
    assert main(["describe", str(path), "--time", "at", "--unit", "s"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"mean rate +41\.\d", shown)
    assert "2023-11-14" in shown
    assert "unlikely" not in shown


def test_a_rate_trace(tmp_path, capsys):
    trace = tmp_path / "trace.txt"
    trace.write_text("".join(f"{second} {100 + second % 7}\n" for second in range(500)) + "nonsense\n")
    assert main(["describe", "--layout", "rates", str(trace), "--plot", str(tmp_path / "trace.svg")]) == 0
    shown = capsys.readouterr().out
    assert "1 line skipped: is not 2 fields" in shown
    assert "102.9" in shown
    assert (tmp_path / "trace.svg").exists()


def test_a_data_set_names_its_columns(tmp_path, capsys):
    for cab in ("abboip", "enyenewl"):
        lines = [f"37.7 -122.4 0 {1213084687 - 60 * row}" for row in range(50)]
        (tmp_path / f"new_{cab}.txt").write_text("\n".join(lines))
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    assert main(["describe", "--layout", "cabs", *files]) == 0
    shown = capsys.readouterr().out
    assert "sources" in shown
    assert "2008-06-10" in shown


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("FILE --time tine", "column 'tine' does not exist; did you mean 'time'?"),
        ("FILE", "--time is missing; name the column of the event time with --time COLUMN"),
        ("FILE FILE --time time", "FILE: got 2 files; give one file or one folder"),
        ("FILE FILE --layout rates", "FILE: got 2 rate traces; give one at a time"),
        ("FILE --time time --plot a.jpg", "need a plot that ends in .svg, .png, .pdf or .html, got a.jpg"),
        (f"{'f' * 5_000} --time time", "cannot read fff"),
        ("FILE --time time --criteria 'c9 MIN'", "column 'c9' does not exist; the columns are 'time'"),
        ("FILE --time time --plot /no/where.svg", "cannot write /no/where.svg: No such file"),
        ("nowhere.parquet --time time", "cannot read nowhere.parquet: "),
    ],
)
def test_what_cannot_be_described_is_reported(file, words, complaint, capsys):
    assert main(["describe", *(str(file) if word == "FILE" else word for word in shlex.split(words))]) == 1
    assert complaint in capsys.readouterr().err
