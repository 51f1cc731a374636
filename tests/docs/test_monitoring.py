"""Dashboards, alert rules and the page on monitoring, against a running broker."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.admin.conftest import admin_url, get
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import run_kctl

DOCS = Path(__file__).parents[2] / "docs"

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
    used = {name for expression in targets for name in metrics_in(expression)}
    # Errors of these kinds have series once there were some.
    assert len(used) > 15
    assert used - served <= {"kafka_network_requestmetrics_errors_total"}


def test_alert_rules_have_remedies_and_use_metrics_that_are_served(served: set[str]) -> None:
    for rule in rules_of("kafka"):
        assert metrics_in(rule["expr"]) - {"up"} <= served, rule["alert"]


def test_alert_rules_of_the_monitor_use_metrics_that_it_serves(broker: RunningBroker) -> None:
    words = ("monitor", "run", "--once", "--probe", "-b", broker.bootstrap_servers)
    shown = run_kctl(*words)
    assert shown.exit_code == 0, shown.stderr
    served = {family.name for family in text_string_to_metric_families(shown.output)}
    served |= {f"{name}_total" for name in served}
    # Without consumers, hanging brokers and TLS there are no series of these.
    absent = {"kctl_broker_unanswered", "kctl_broker_certificate_expiry_seconds"}
    absent |= {"kafka_consumergroup_group_max_lag_seconds", "kctl_group_verdict"}
    for rule in rules_of("kctl-monitor"):
        assert metrics_in(rule["expr"]) <= served | absent, rule["alert"]


def rules_of(group: str) -> list[dict[str, Any]]:
    """The alert rules of a group, each with a severity and a remedy."""
    groups = yaml.safe_load((DOCS / "monitoring/alerts.yml").read_text())["groups"]
    (rules,) = (one["rules"] for one in groups if one["name"] == group)
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"].keys() == {"summary", "remedy"}
    return list(rules)


def metrics_in(expression: str) -> set[str]:
    """The names of metrics, from Prometheus' grammar; ValueError if it is not PromQL."""
    found = set()

    def visit(node: Any) -> None:
        if isinstance(node, promql_parser.VectorSelector):
            found.add(str(node.name))
        for child in ("expr", "lhs", "rhs", "vector_selector"):
            if (inner := getattr(node, child, None)) is not None:
                visit(inner)
        for argument in getattr(node, "args", None) or ():
            visit(argument)

    visit(promql_parser.parse(expression))
    return found


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
