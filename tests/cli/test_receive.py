"""What `skypane receive` and `skypane inputs` say before anything is received or read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from skypane.cli.main import main

METERS = {"name": "meters", "mqtt": "mqtt://broker", "topic": "meters/+", "password": "$METERS_PASSWORD"}


def listing(folder: Path, *inputs: Mapping[str, object]) -> str:
    path = folder / "inputs.yaml"
    path.write_text(yaml.safe_dump({"folder": str(folder / "received"), "inputs": [dict(one) for one in inputs]}))
    return str(path)


def test_a_dry_run_checks_the_list_and_its_secrets_and_makes_nothing(tmp_path, monkeypatch, capsys):
    path = listing(tmp_path, METERS, {"name": "a", "listen": "localhost:7001"})
    assert main(["receive", path, "--dry-run"]) == 1
    assert (
        "input meters: password is in the environment variable METERS_PASSWORD, which is not set"
        in capsys.readouterr().err
    )
    monkeypatch.setenv("METERS_PASSWORD", "swordfish")
    assert main(["receive", path, "--dry-run"]) == 0
    message = capsys.readouterr().out
    assert "messages of meters/+ from mqtt://broker, as client skypane-meters" in message
    assert "the list of inputs is valid; nothing was received" in message
    assert "swordfish" not in message
    assert not (tmp_path / "received").exists()


def test_the_order_may_be_an_option_and_replaces_what_the_list_has(tmp_path, capsys):
    path = listing(tmp_path, {"name": "a", "listen": "localhost:7001"})
    options = ["--order", "by time", "--time", "at", "--idle-after", "5 seconds", "--dry-run"]
    assert main(["receive", path, *options]) == 0
    assert (
        "by-time     all inputs in the order of at; a line waits for silent inputs for 5 s" in capsys.readouterr().out
    )
    assert main(["receive", path, "--order", "by time", "--dry-run"]) == 1
    assert "order 'by time' needs time, the field with the event time" in capsys.readouterr().err


def test_an_invalid_list_gives_an_error_of_one_sentence(tmp_path, capsys):
    assert main(["receive", listing(tmp_path, {"name": "a", "lisen": "localhost:1"})]) == 1
    assert capsys.readouterr().err.startswith("skypane: inputs[0] needs exactly one of listen, connect, mqtt, http")
    assert main(["receive", str(tmp_path / "none.yaml")]) == 1
    assert "cannot read the list of inputs" in capsys.readouterr().err


@pytest.mark.parametrize(("source", "checkpoint", "message"), [
    ({"format": "rate"}, "state", "source.format of towns must be skypane-many, got rate"),
    ({"format": "skypane-many", "options": {"inputs": '["a.csv"]'}}, "state", "state is not the checkpoint of a query"),
    ({"format": "skypane-many", "options": {"inputs": '["a.csv"]'}}, None, "checkpoint is missing in towns"),
])  # fmt: skip
def test_a_job_whose_inputs_cannot_be_seen_gets_the_reason(tmp_path, capsys, source, checkpoint, message: str):
    job = {"name": "towns", "source": source, "query": {"kind": "skyline", "preference": "price MIN"},
           "window": {"time": "ts", "length": "1 minute"}, "output": {"format": "console"}}  # fmt: skip
    if checkpoint is not None:
        job["checkpoint"] = str(tmp_path / checkpoint)
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert main(["inputs", str(tmp_path / "job.yaml")]) == 1
    assert message in capsys.readouterr().err
