"""Dashboards, alert rules and the page on monitoring, against a running broker."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.admin.conftest import admin_url, get
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import run_kctl

DOCS = Path(__file__).parents[2] / "docs"
METRIC = re.compile(r"\b((?:kafka|process)_[a-z0-9_]+)")

# What Strimzi's, Confluent's and Grafana.com's Kafka dashboards read (reference: rule files of
# jmx_exporter 2026-08, strimzi 2026-08), as far as it has a meaning for this broker.
DASHBOARDS = (Path(__file__).parent / "dashboard_metrics.txt").read_text().split()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with a topic, some requests and an error."""
    directory = tmp_path_factory.mktemp("broker")
    with running_broker(directory, admin_listeners="http://127.0.0.1:0") as running:
        server = ("-b", running.bootstrap_servers)
        assert run_kctl("topics", "create", "orders", *server).exit_code == 0
        assert run_kctl("topics", "delete", "missing", "--yes", *server).exit_code == 1
        yield running


@pytest.fixture(scope="module")
def served(broker: RunningBroker) -> set[str]:
    """The names of all series."""
    _, text = get(f"{admin_url(broker)}/metrics")
    return {line.split("{")[0].split()[0] for line in text.splitlines() if line[0] != "#"}


def test_every_metric_of_the_common_dashboards_is_served(served: set[str]) -> None:
    assert set(DASHBOARDS) - served == set()


def test_every_metric_of_our_dashboard_is_served(served: set[str]) -> None:
    dashboard = json.loads((DOCS / "monitoring/dashboard.json").read_text())
    targets = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for expression in targets for name in METRIC.findall(expression)}
    # Errors of these kinds have series once there were some.
    assert len(used) > 15
    assert used - served <= {"kafka_network_requestmetrics_errors_total"}


def test_alert_rules_have_remedies_and_use_metrics_that_are_served(served: set[str]) -> None:
    rules = yaml.safe_load((DOCS / "monitoring/alerts.yml").read_text())["groups"][0]["rules"]
    assert len(rules) > 10
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "remedy"}
        assert set(METRIC.findall(rule["expr"])) <= served, rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_scrape_configuration_names_the_rules() -> None:
    config = yaml.safe_load((DOCS / "monitoring/prometheus.yml").read_text())
    assert config["rule_files"] == ["alerts.yml"]
    assert config["scrape_configs"][0]["job_name"] == "kafka-broker"


def commands() -> list[str]:
    return re.findall(r"^\$ (kctl .*)$", (DOCS / "monitoring.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("line", commands())
def test_command_of_the_page_works(broker: RunningBroker, line: str) -> None:
    address = admin_url(broker).removeprefix("http://")
    words = shlex.split(line.replace("127.0.0.1:9644", address))[1:]
    result = run_kctl(*words, "-b", broker.bootstrap_servers)
    assert result.exit_code == 0, result.stderr
