"""The shipped examples are sound, found by name, and part of the package."""

import pytest

from skypane.jobs import examples
from skypane.jobs.description import criteria, settings
from skypane.types import ConfigError


def test_there_are_five():
    assert examples.names() == ["cab-areas", "flights-board", "flights-top-delays", "meter-load", "rate-skyline"]


@pytest.mark.parametrize("name", examples.names())
def test_each_example_is_sound_and_describes_how_to_run_it(name):
    job = examples.find(name)
    assert job.name == name
    assert f"skypane run {name}" in examples.text(name)
    assert {"query", "query of best"} & dict(settings(job)).keys()


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rate-skyline").write_text(examples.text("rate-skyline").replace("10 seconds", "20 seconds"))
    window = examples.find("rate-skyline").window
    assert window is not None
    assert window.length == "20 seconds"


def test_a_folder_of_that_name_is_the_output_and_the_same_command_continues(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rate-skyline").mkdir()
    assert examples.find("rate-skyline").name == "rate-skyline"


def test_an_unknown_one_is_named():
    with pytest.raises(
        ConfigError, match="JOB 'x' is not an example; use one of cab-areas, flights-board, flights-top-"
    ):
        examples.text("x")


def test_a_name_that_is_nearly_one_is_answered_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "offers.yml").touch()
    (tmp_path / "meter-loads.yaml").touch()
    for given, near in (
        ("cab-area", "cab-areas"),
        ("Rate-Skylin", "rate-skyline"),
        ("jobs/ofers.yml", "jobs/offers.yml"),
        ("meter-load.yaml", "meter-loads.yaml"),
    ):
        with pytest.raises(ConfigError, match=f"there is no job file {given}, did you mean '{near}'"):
            examples.find(given)
    with pytest.raises(ConfigError, match="JOB 'cab-area' is not an example; did you mean 'cab-areas'"):
        examples.text("cab-area")
    for far in ("x", "none/x", "x\0"):
        with pytest.raises(ConfigError, match="cannot read the job file"):
            examples.find(far)


def test_jobs_in_words():
    words = dict(settings(examples.find("rate-skyline")))
    assert words["query"] == "skyline of price MIN, rating MAX, one per city"
    assert words["window"] == "10 s of ts, every 1 s: 10 panes of 1 s"
    assert words["late rows"] == "parquet in rate-skyline/late"
    assert [(c.column, c.good) for c in criteria(*examples.find("rate-skyline").each_query)] == [
        ("price", "low"),
        ("rating", "high"),
    ]
    batch = dict(settings(examples.find("flights-top-delays")))
    assert batch["query"] == "the 3 rows of largest dep_delay + 0.5 * arr_delay, one per carrier"
    assert "checkpoint" not in batch
