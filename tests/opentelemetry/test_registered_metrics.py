"""Queries whose metrics are registered: in which provider, until when, and what happens without a provider or the package."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from threading import Event

import pytest
from opentelemetry.metrics import get_meter_provider
from opentelemetry.sdk.metrics.export import HistogramDataPoint
from tests.opentelemetry.collected import metrics, provider_and_reader, total, value, values
from tests.prometheus.watched import Ledger, handle_of
from tests.reporting.made import batch

import skypane as sp
from skypane.cli.main import main
from skypane.metrics import BatchMetrics
from skypane.opentelemetry import instruments

LIMIT = 60.0
LATER = 4e9
"""A start of a batch that is later than any registration."""


def later(batch_id: int) -> BatchMetrics:
    return batch(batch_id=batch_id, rows=1, started_at=LATER + batch_id, seconds={"total": 2.0})


class Elsewhere(Ledger):
    checkpoint = "/elsewhere"


def next_time() -> float:
    """Return a time of the clock after all that it has shown; it may stand still for milliseconds."""
    now = time.time()
    while (then := time.time()) <= now:
        pass
    return then


def test_a_query_is_counted_from_its_registration_on():
    provider, reader = provider_and_reader()
    ledger = Ledger(batch(batch_id=0, rows=1, open_panes=3))
    with sp.register_metrics(handle_of(ledger), meter_provider=provider):
        assert value(reader, "skypane.rows", stream="watched") == 0, "the batch began before"
        assert value(reader, "skypane.open_panes", stream="watched", query="") == 3
        for number in (1, 2):
            ledger.commit(later(number))
        assert value(reader, "skypane.rows", stream="watched") == 2
        assert value(reader, "skypane.running", stream="watched") == 1
        (point,) = metrics(reader)["skypane.batch_duration"].data.data_points
        assert isinstance(point, HistogramDataPoint)
        assert (point.count, point.sum) == (2, 4.0)


def test_registrations_in_one_provider_share_their_instruments(caplog: pytest.LogCaptureFixture):
    """The SDK would ignore the callbacks of a second instrument of a name."""
    provider, reader = provider_and_reader()
    one, other = Ledger(), Ledger()
    sp.register_metrics(handle_of(one), meter_provider=provider)
    shared = sp.register_metrics(meter_provider=provider)
    shared.watch(handle_of(other), name="other")
    one.commit(later(0))
    other.commit(later(0))
    assert value(reader, "skypane.rows", stream="watched") == value(reader, "skypane.rows", stream="other") == 1
    assert repr(shared) == "<metrics of other in OpenTelemetry>"
    assert not caplog.records


def test_close_ends_only_the_queries_of_this_registration():
    provider, reader = provider_and_reader()
    one, other = Ledger(), Ledger()
    sp.register_metrics(handle_of(one), meter_provider=provider)
    with sp.register_metrics(meter_provider=provider) as ended:
        ended.watch(handle_of(other), name="other")
        ended.watch(handle_of(one), name="taken over")
        taker = sp.register_metrics(meter_provider=provider)
        taker.watch(handle_of(one), name="taken over")
    one.commit(later(0))
    assert not other.listeners
    streams = {dict(labels)["stream"] for name, labels in values(reader) if name == "skypane.batches"}
    assert streams == {"watched", "taken over"}
    assert total(reader, "skypane.batches") == 2


def test_batches_before_a_later_registration_in_one_provider_do_not_count():
    provider, reader = provider_and_reader()
    first = sp.register_metrics(meter_provider=provider)
    earlier = Ledger(batch(batch_id=0, rows=1, started_at=next_time()))
    next_time()
    sp.register_metrics(handle_of(earlier), meter_provider=provider)
    assert value(reader, "skypane.rows", stream="watched") == 0
    first.watch(handle_of(earlier), name="first")
    assert value(reader, "skypane.rows", stream="first") == 1


def test_a_registration_that_is_refused_leaves_no_query_watched():
    provider, reader = provider_and_reader()
    one, other = Ledger(), Elsewhere()
    with pytest.raises(sp.ConfigError, match="both named 'watched'"):
        sp.register_metrics(handle_of(one), handle_of(other), meter_provider=provider)
    assert not one.listeners
    assert not other.listeners
    assert values(reader) == {}


def test_providers_are_independent():
    provider, reader = provider_and_reader()
    other, unread = provider_and_reader()
    with sp.register_metrics(handle_of(Ledger()), meter_provider=provider), sp.register_metrics(meter_provider=other):
        assert value(reader, "skypane.batches", stream="watched") == 0
        assert values(unread) == {}


def test_after_close_nothing_is_given():
    provider, reader = provider_and_reader()
    ledger = Ledger()
    with sp.register_metrics(handle_of(ledger), meter_provider=provider):
        ledger.commit(later(0))
    assert not ledger.listeners
    assert {name for name, _ in values(reader)} == {"skypane.batch_duration"}, "the SDK keeps what was recorded"


@pytest.mark.parametrize("differences", [False, True], ids=["sums", "differences"])
def test_a_counter_never_decreases_also_if_its_query_is_watched_again_after_close(*, differences: bool):
    """An exporter sees one series; from a smaller value, an exporter of differences would make a negative one."""
    provider, reader = provider_and_reader(differences=differences)
    ledger = Ledger()
    seen: list[float] = []
    registered = sp.register_metrics(handle_of(ledger), meter_provider=provider)
    ledger.commit(later(0))
    seen.append(value(reader, "skypane.rows", stream="watched"))
    registered.close()
    assert ("skypane.rows", (("stream", "watched"),)) not in values(reader)
    registered.watch(handle_of(Ledger(batch(batch_id=0, rows=1))))
    seen.append(value(reader, "skypane.rows", stream="watched"))
    assert seen == ([1, 0] if differences else [1, 1]), "the batch began before, and does not count again"


def test_a_name_stands_for_one_checkpoint():
    provider, _ = provider_and_reader()
    elsewhere = Elsewhere()
    with sp.register_metrics(handle_of(Ledger()), meter_provider=provider) as registered:
        with pytest.raises(sp.ConfigError, match=r"/checkpoint and /elsewhere are both named 'watched'.* name="):
            registered.watch(handle_of(elsewhere))
        assert not elsewhere.listeners
        registered.watch(handle_of(elsewhere), name="elsewhere")


def test_a_query_that_spark_does_not_answer_for_is_given_as_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(instruments, "PATIENCE", 0.05)
    provider, reader = provider_and_reader()
    answers = Event()
    with sp.register_metrics(handle_of(Ledger(), lambda: answers.wait(LIMIT)), meter_provider=provider):
        assert value(reader, "skypane.running", stream="watched") == 0
        assert value(reader, "skypane.batches", stream="watched") == 0
        answers.set()


def test_without_a_provider_nothing_is_lost_silently():
    with pytest.raises(
        sp.ConfigError, match=r"no MeterProvider yet.*\.set_meter_provider\(\) before, give one as meter_pro"
    ):
        sp.register_metrics()
    with pytest.raises(sp.ConfigError, match="no MeterProvider yet"):
        sp.register_metrics(meter_provider=get_meter_provider())


def test_a_job_without_a_provider_ends_before_spark_starts(capsys: pytest.CaptureFixture[str]):
    assert main(["run", "rate-skyline", "--opentelemetry"]) == 1
    output = capsys.readouterr()
    assert "skypane: OpenTelemetry has no MeterProvider yet" in output.err
    assert len(output.err.splitlines()) == 1


LAST = """
import sys
from opentelemetry.metrics import set_meter_provider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from tests.opentelemetry.test_registered_metrics import later
from tests.prometheus.watched import Ledger, handle_of
import skypane as sp

exporter = ConsoleMetricExporter(formatter=lambda data: data.to_json(indent=None) + "\\n")
set_meter_provider(MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=1e9)]))
ledger = Ledger()
sp.register_metrics(handle_of(ledger))
ledger.commit(later(0))
"""


@pytest.mark.long
def test_the_last_batches_are_exported_when_the_program_ends():
    """From Python 3.12 on no thread can begin then, which would wait for Spark's answer whether a query runs."""
    done = subprocess.run([sys.executable, "-c", LAST], capture_output=True, text=True, check=True)
    (line,) = done.stdout.splitlines()
    (scope,) = json.loads(line)["resource_metrics"][0]["scope_metrics"]
    found = {one["name"]: one["data"]["data_points"] for one in scope["metrics"]}
    assert found["skypane.rows"][0]["value"] == 1
    assert found["skypane.running"][0]["value"] in {0, 1}
    assert done.stderr == ""


WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
import skypane as sp
try:
    sp.register_metrics()
except sp.ConfigError as error:
    print(error)
"""


@pytest.mark.long
def test_without_its_package_the_error_has_the_command_that_installs_it():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "not installed: pip install 'skypane[opentelemetry]'" in done.stdout
