"""A workload is written as requested; an invalid one is reported in one sentence."""

import pyarrow.parquet as pq
import pytest

from skypane.cli.main import main
from skypane.runtime.generating import ROW_GROUP, write
from skypane.types import ConfigError
from skypane.workloads import ARRIVALS, SCENES, workload

ASKED = ["--rate", "1000", "--delay=uniform", "--delay-mean", "200 ms", "--d", "2", "--rows", "3000", "--seed", "4"]


def test_the_file_holds_the_workload(tmp_path, capsys):
    out = tmp_path / "made.parquet"
    assert main(["generate", "poisson", *ASKED, "--out", str(out)]) == 0
    made = workload("poisson", rate=1000, delay="uniform", delay_mean="200 ms", d=2, rows=3000, seed=4)
    assert pq.read_table(out).equals(made.table())
    assert "3,000 rows, columns time, arrival, source, key, c0, c1, in order of arrival" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["made.parquet"]


def test_seconds_limit_event_time(tmp_path):
    out = tmp_path / "made.parquet"
    assert main(["generate", "constant", "--rate", "10", "--seconds", "2.5", "--d", "1", "--out", str(out)]) == 0
    assert pq.read_metadata(out).num_rows == 25


def test_row_groups_are_of_a_size(tmp_path):
    counts: list[int] = []
    assert write(workload("poisson", rate=1000, d=1, rows=150_000), tmp_path / "a.parquet", counts.append) == 150_000
    found = pq.read_metadata(tmp_path / "a.parquet")
    assert found.num_row_groups == 3
    assert all(found.row_group(group).num_rows <= ROW_GROUP for group in range(3))
    assert counts == sorted(counts)
    assert counts[-1] == 150_000


def test_names_are_listed(capsys):
    assert main(["generate"]) == 0
    assert capsys.readouterr().out.split() == [*ARRIVALS, *SCENES]


def test_help_names_the_parameters(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["generate", "map2", "--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert "parameters of map2: rate, dispersion, ratio, burst_share" in shown
    assert "delay=pareto: delay_... mean, tail" in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("no-such --rows 1", "workload: unknown 'no-such'; use one of constant, poisson"),
        ("poisson --rate 1 --out a.parquet", "--rows and --seconds are both missing"),
        ("poisson --rat 1 --rows 1 --out a.parquet", "has no parameter 'rat'; it takes rate"),
        (
            "poisson --rate 1 --exponent 1.2 --rows 1 --out a.parquet",
            "arrivals 'poisson' has no parameter 'exponent'; did you mean keys_exponent or source_exponent?",
        ),
        (
            "poisson --rate 1 --delay pareto --tail 2 --rows 1 --out a.parquet",
            "arrivals 'poisson' has no parameter 'tail'; did you mean delay_tail?",
        ),
        (f"poisson --rate 1 --rows 1 --out {'a' * 300}", "cannot write aaa"),
        ("poisson --rate fast --rows 1 --out a.parquet", "rate must be a number, got 'fast'"),
        ("poisson rate 1 --rows 1 --out a.parquet", "parameters must be given as --name value, got 'rate'"),
        ("poisson --rows 1 --out a.parquet --rate", "parameter --rate has no value"),
        ("poisson --rate 1 --rows 1 --out no/a.parquet", "cannot write no/a.parquet: "),
    ],
)
def test_what_cannot_be_created_is_reported(words, complaint, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["generate", *words.split()]) == 1
    assert complaint in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_to_write_is_needed(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["generate", "poisson", "--rate", "1"])
    assert exit_.value.code == 2
    assert "usage: skypane generate poisson" in capsys.readouterr().err


def test_an_endless_workload_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="the workload is endless and would fill any disk"):
        write(workload("poisson", rate=1), tmp_path / "a.parquet")
