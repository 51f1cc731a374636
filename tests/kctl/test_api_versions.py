"""`kctl api-versions`: rows for people and programs, and Kafka's own text."""

import re
from pathlib import Path

from kctl.model.api_versions import ApiRange
from kctl.model.cluster import Broker, Cluster
from kctl.views.api_versions import version_rows
from kctl.views.kafka_text.api_versions import broker_api_versions
from kctl.views.kafka_text.cluster import cluster_id_line

GOLDEN = Path(__file__).parents[1] / "golden" / "tools"
RANGE = re.compile(r"\((\d+)\): (\d+)(?: to (\d+))?")
ONE, TWO = Broker(1, "one", 9092, None), Broker(2, "two", 9092, "rack-a")


def golden_blocks() -> list[tuple[Broker, list[str]]]:
    """What kafka-broker-api-versions printed on a cluster of three: each broker, and its lines."""
    blocks: list[tuple[Broker, list[str]]] = []
    for line in (GOLDEN / "53-api-versions.txt").read_text().splitlines()[1:-1]:
        if found := re.match(r"(\S+):(\d+) \(id: (\d+) rack: (\S+)\) -> \(", line):
            blocks.append((Broker(int(found[3]), found[1], int(found[2]), found[4]), []))
        blocks[-1][1].append(line)
    return blocks


def test_kafka_text_equals_kafkas_tool() -> None:
    blocks = golden_blocks()
    assert len(blocks) == 3
    for broker, lines in blocks:
        found = [match for line in lines if (match := RANGE.search(line))]
        ranges = [ApiRange(int(m[1]), int(m[2]), int(m[3] or m[2])) for m in found]
        assert list(broker_api_versions(broker, ranges)) == lines


def test_kafka_text_of_a_broker_newer_than_us() -> None:
    ranges = [ApiRange(0, 99, 100), ApiRange(500, 0, 1)]
    lines = list(broker_api_versions(ONE, ranges))
    assert lines[0] == "one:9092 (id: 1 rack: null) -> ("
    assert "\tProduce(0): 99 to 100 [unusable: node too new]," in lines
    assert lines[-2:] == ["\tUNKNOWN(500): 0 to 1", ")"]


def test_brokers_with_equal_ranges_share_a_row() -> None:
    answers = [
        (ONE, [ApiRange(0, 0, 11), ApiRange(3, 0, 12)]),
        (TWO, [ApiRange(0, 0, 9), ApiRange(3, 0, 12)]),
    ]
    rows = [(row["api"], row["max_version"], row["brokers"]) for row in version_rows(answers)]
    assert rows == [("Produce", 11, [1]), ("Produce", 9, [2]), ("Metadata", 12, [1, 2])]


def test_used_version_is_the_highest_both_sides_speak() -> None:
    assert ApiRange(3, 0, 5).used_version == 5
    assert ApiRange(3, 0, 99).used_version == 12
    assert ApiRange(3, 50, 99).used_version is None
    assert ApiRange(500, 0, 1).used_version is None


def test_cluster_id_text_equals_kafkas_tool() -> None:
    golden = (GOLDEN / "54-cluster-id.txt").read_text().splitlines()[1]
    cluster_id = golden.removeprefix("Cluster ID: ")
    assert cluster_id_line(Cluster(cluster_id, 1, ())) == golden
    assert "too old" in cluster_id_line(Cluster(None, None, ()))
