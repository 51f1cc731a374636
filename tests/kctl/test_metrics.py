"""`kctl metrics`: a broker's admin port as a table."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from kctl.admin.metrics import metrics_url, parse_metrics
from tests.support.broker import running_broker
from tests.support.kctl import run_kctl


def test_metrics_of_a_broker_are_listed_and_filtered(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("abc\n")
    with running_broker(
        tmp_path, admin_listeners="http://127.0.0.1:0", admin_bearer_token="abc"
    ) as broker:
        url = broker.server.wait_for_line(r"admin port is open url=(\S+)")[1]
        address = url.removeprefix("http://")
        denied = run_kctl("metrics", address)
        assert denied.exit_code == 1
        assert "--token-file" in denied.stderr
        listed = run_kctl("metrics", address, "*brokerstate", "--token-file", str(token))
        assert listed.output.split() == [
            "NAME",
            "LABELS",
            "VALUE",
            "kafka_server_kafkaserver_brokerstate",
            "3",
        ]
        as_json = run_kctl(
            "metrics", url, "*purgatorysize", "--token-file", str(token), "-o", "json"
        )
        assert {row["labels"]["delayedOperation"] for row in as_json.json} >= {"Fetch", "Produce"}
        missing = run_kctl("metrics", address, "nothing*", "--token-file", str(token))
        assert (missing.exit_code, missing.output) == (1, "")


@pytest.mark.parametrize("address", ["", "ftp://x", "host:notaport", "http://"])
def test_wrong_address_is_a_usage_error(address: str) -> None:
    result = run_kctl("metrics", address)
    assert result.exit_code == 2
    assert "internal" not in result.stderr


def test_closed_port_is_one_error() -> None:
    result = run_kctl("metrics", "127.0.0.1:1", "--timeout", "2")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: cannot read http://127.0.0.1:1/metrics: ")


def test_path_is_added_unless_it_is_given() -> None:
    assert metrics_url("h:1") == "http://h:1/metrics"
    assert metrics_url("https://h:1/") == "https://h:1/metrics"
    assert metrics_url("http://h:1/public_metrics") == "http://h:1/public_metrics"


TOPIC = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=6)


@given(st.dictionaries(TOPIC, st.floats(allow_nan=False), min_size=1))
def test_what_prometheus_client_writes_is_read(values: dict[str, float]) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("kafka_x", "X.", ["topic"], registry=registry)
    for topic, value in values.items():
        gauge.labels(topic).set(value)
    series = list(parse_metrics(generate_latest(registry).decode()))
    assert {one.labels["topic"]: one.value for one in series} == values
