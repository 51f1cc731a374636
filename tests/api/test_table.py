"""The API table against the ApiVersions of Apache Kafka 3.9.1 in ZooKeeper mode (golden data)."""

import re
from typing import Final

from broker.api.table import TABLE
from tests.support.golden_tools import golden_tool

_API: Final = re.compile(r"\t(\w+)\((\d+)\): (\d+)(?: to (\d+))? \[usable: \d+\],?")

INTENDED_DIFFERENCES: Final[dict[int, str]] = {}
"""API keys whose row differs from Kafka's, each with the reason. Keep it empty: clients such as
franz-go, kminion and kafka-python infer a broker's version from this table."""


def kafka_apis() -> dict[int, tuple[int, int]]:
    """Lowest and highest version by API key, as one broker of the golden cluster listed them."""
    broker = golden_tool("53-").text.split("\n)\n")[0]
    return {
        int(key): (int(lowest), int(highest or lowest))
        for _, key, lowest, highest in _API.findall(broker)
    }


def test_table_is_that_of_a_zookeeper_broker_of_kafka_3_9() -> None:
    kafka = kafka_apis()
    assert len(kafka) == 62
    ours = {int(key): row.versions for key, row in TABLE.items()}
    differing = {key for key in kafka | ours if kafka.get(key) != ours.get(key)}
    assert differing == set(INTENDED_DIFFERENCES)
