"""A broker with an open admin port, and a reader of what it serves."""

from collections.abc import Callable, Iterator
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from tests.support.broker import RunningBroker, running_broker

URL = r"admin port is open url=(\S+)"

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def admin_url(broker: RunningBroker) -> str:
    """Where the admin port of a broker is."""
    return broker.server.wait_for_line(URL)[1]


def get(url: str, **headers: str) -> tuple[int, str]:
    """Status and body of a GET request."""
    try:
        with urlopen(Request(url, headers=headers), timeout=30) as response:  # noqa: S310
            return response.status, response.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def read_openmetrics(text: str) -> Iterator[Metric]:
    """The families of an OpenMetrics text, read by Prometheus' own parser."""
    yield from openmetrics_parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]


def scrape(url: str) -> Samples:
    """All series by name and labels, read by Prometheus' own parser."""
    status, text = get(f"{url}/metrics")
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """The value of one series; KeyError if it is missing."""
    return samples[name, frozenset(labels.items())]


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """One broker with its admin port open."""
    with running_broker(
        tmp_path_factory.mktemp("broker"), admin_listeners="http://127.0.0.1:0"
    ) as running:
        yield running


@pytest.fixture
def scraped(monitored: RunningBroker) -> Callable[[], Samples]:
    """Scrapes the broker."""
    url = admin_url(monitored)
    return lambda: scrape(url)
