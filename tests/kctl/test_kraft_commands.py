"""Commands that need a KRaft cluster, on brokers that use ZooKeeper: ours and Apache's."""

import pytest

from kctl.model.features import (
    METADATA_VERSIONS,
    FeatureUpdate,
    level_name,
    metadata_level,
    parse_update,
    release_updates,
)
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl
from tests.support.real_kafka import RealKafka

REFUSED = [
    "quorum",
    "quorum status",
    "quorum replication --format kafka",
    "features upgrade group.version=1 --yes",
    "features downgrade metadata.version=3.9 --yes",
    "features disable share.version --dry-run",
    "cluster unregister 7 --yes",
    "configs describe --entity-type client-metrics",
]


def _check_refused(kctl: Kctl, servers: str, line: str) -> None:
    result = kctl("-b", servers, *line.split())
    assert result.exit_code == 1
    assert "the cluster is not in KRaft mode" in result.stderr
    assert "ZooKeeper" in result.stderr
    assert result.output == ""


@pytest.mark.parametrize("line", REFUSED)
def test_command_says_that_our_broker_is_not_in_kraft_mode(
    kctl: Kctl, shared_broker: RunningBroker, line: str
) -> None:
    _check_refused(kctl, shared_broker.bootstrap_servers, line)


@pytest.mark.kafka
@pytest.mark.timeout(300)
@pytest.mark.parametrize("line", REFUSED)
def test_command_says_that_kafka_is_not_in_kraft_mode(
    kctl: Kctl, real_kafka: RealKafka, line: str
) -> None:
    _check_refused(kctl, real_kafka.bootstrap_servers, line)


NOTHING_THERE = ["features -o json", "features describe --format kafka"]


@pytest.mark.parametrize("line", NOTHING_THERE)
def test_our_broker_has_no_features(kctl: Kctl, shared_broker: RunningBroker, line: str) -> None:
    result = kctl("-b", shared_broker.bootstrap_servers, *line.split())
    assert result.exit_code == 0
    assert result.output.strip() in ("[]", "")


def test_cluster_of_our_broker_is_not_in_kraft_mode(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    found = kctl("-b", shared_broker.bootstrap_servers, "cluster", "-o", "json").json
    assert found["kraft"] is False
    assert isinstance(found["controller_id"], int)


BAD_CONFIGS = [
    "configs describe client-metrics:m1",
    "configs describe group:g1",
    "configs set client-metrics:m1 interval.ms=1000 --yes",
    "configs set group:g1 consumer.session.timeout.ms=50000 --yes",
]


@pytest.mark.kafka
@pytest.mark.timeout(300)
@pytest.mark.parametrize("line", BAD_CONFIGS)
def test_configs_of_kraft_entities_get_the_error_that_kafka_gives(
    kctl: Kctl, shared_broker: RunningBroker, real_kafka: RealKafka, line: str
) -> None:
    ours = kctl("-b", shared_broker.bootstrap_servers, *line.split())
    theirs = kctl("-b", real_kafka.bootstrap_servers, *line.split())
    assert ours == theirs
    assert ours.exit_code == 1


def test_group_type_that_does_not_exist_is_a_usage_error(
    kctl: Kctl, shared_broker: RunningBroker
) -> None:
    words = ("groups", "list", "--type", "clasic")
    result = kctl("-b", shared_broker.bootstrap_servers, *words)
    assert result.exit_code == 2
    assert "no such group type: 'clasic'" in result.stderr


def test_metadata_versions_have_the_levels_of_kafka() -> None:
    assert metadata_level("3.0-IV1") == 1
    assert metadata_level("3.3-IV3") == 7
    assert metadata_level("3.9") == metadata_level("3.9-IV0") == 21
    assert metadata_level("4.1") == metadata_level("4.1-IV1") == 27
    assert level_name("metadata.version", 27) == "4.1-IV1"
    assert level_name("metadata.version", len(METADATA_VERSIONS) + 1).startswith("UNKNOWN")


def test_levels_of_a_release_are_those_that_it_has_by_default() -> None:
    levels = {update.name: update.level for update in release_updates("4.0")}
    assert levels["metadata.version"] == 25
    assert (levels["group.version"], levels["transaction.version"]) == (1, 2)
    assert levels["eligible.leader.replicas.version"] == levels["share.version"] == 0


def test_update_is_parsed_with_level_or_metadata_version() -> None:
    assert parse_update(" group.version = 1 ") == FeatureUpdate("group.version", 1)
    assert parse_update("metadata.version=4.1") == FeatureUpdate("metadata.version", 27)


@pytest.mark.parametrize("text", ["", "x", "=1", "x=", "x=-1", "x=70000", "x=1.5", "x=4.1-IV1"])
def test_malformed_update_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"FEATURE=LEVEL|must be a number"):
        parse_update(text)
