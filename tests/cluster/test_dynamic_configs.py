"""Configs changed on any broker of a running cluster reach every broker."""

from broker.api.config_changes import ResourceType
from broker.config.alterations import Operation
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.cluster.asking import delete_topic, make_topic
from tests.support.cluster import Cluster, wait_until
from tests.support.wire import WireClient


def setting(
    cluster: Cluster, broker_id: int, resource_type: ResourceType, name: str, key: str
) -> str | None:
    """What one broker says of a setting."""
    asked = DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=[key]
    )
    with WireClient(cluster.address(broker_id)) as wire:
        (result,) = wire.ask(DescribeConfigsRequest(resources=[asked]), 4).results
    return result.configs[0].value if result.configs else None


def alter(
    cluster: Cluster, broker_id: int, resource_type: ResourceType, name: str, **settings: str | None
) -> None:
    """Tell one broker; None deletes a setting."""
    changes = [
        AlterableConfig(
            name=key.replace("_", "."),
            config_operation=Operation.DELETE if value is None else Operation.SET,
            value=value,
        )
        for key, value in settings.items()
    ]
    resource = AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=changes
    )
    with WireClient(cluster.address(broker_id)) as wire:
        request = IncrementalAlterConfigsRequest(resources=[resource])
        (answer,) = wire.ask(request, 1).responses
    assert answer.error_code == 0, answer.error_message


def wait_for_setting(
    cluster: Cluster, broker_id: int, resource_type: ResourceType, name: str, key: str, value: str
) -> None:
    """Wait until one broker reports the value."""
    wait_until(
        lambda: setting(cluster, broker_id, resource_type, name, key) == value,
        f"broker {broker_id} has {key}={value}",
    )


def everywhere(
    cluster: Cluster, resource_type: ResourceType, name: str, key: str, value: str
) -> None:
    """Wait until all brokers say the same."""
    for broker_id in cluster.servers:
        wait_for_setting(cluster, broker_id, resource_type, name, key, value)


def test_a_topics_setting_is_known_where_it_has_replicas_and_where_not(
    shared_cluster: Cluster,
) -> None:
    make_topic(shared_cluster, "tuned", {0: [1, 2]}, retention_ms="111000")
    everywhere(shared_cluster, ResourceType.TOPIC, "tuned", "retention.ms", "111000")
    alter(shared_cluster, 3, ResourceType.TOPIC, "tuned", retention_ms="222000")
    everywhere(shared_cluster, ResourceType.TOPIC, "tuned", "retention.ms", "222000")
    alter(shared_cluster, 1, ResourceType.TOPIC, "tuned", retention_ms=None)
    everywhere(shared_cluster, ResourceType.TOPIC, "tuned", "retention.ms", "604800000")


def test_a_topic_that_comes_again_has_nothing_of_its_namesake(shared_cluster: Cluster) -> None:
    make_topic(shared_cluster, "again", {0: [1, 2, 3]}, segment_bytes="11111")
    everywhere(shared_cluster, ResourceType.TOPIC, "again", "segment.bytes", "11111")
    assert delete_topic(shared_cluster, "again") == 0
    make_topic(shared_cluster, "again", {0: [1, 2, 3]}, retention_ms="5000")
    everywhere(shared_cluster, ResourceType.TOPIC, "again", "retention.ms", "5000")
    everywhere(shared_cluster, ResourceType.TOPIC, "again", "segment.bytes", "1073741824")


def test_a_setting_for_all_brokers_reaches_all_and_one_for_one_stays_there(
    shared_cluster: Cluster,
) -> None:
    alter(shared_cluster, 2, ResourceType.BROKER, "", log_retention_ms="333000")
    for broker_id in (1, 2, 3):
        name, key = str(broker_id), "log.retention.ms"
        wait_for_setting(shared_cluster, broker_id, ResourceType.BROKER, name, key, "333000")
    alter(shared_cluster, 3, ResourceType.BROKER, "3", log_retention_ms="444000")
    own = [
        setting(shared_cluster, asked, ResourceType.BROKER, str(asked), "log.retention.ms")
        for asked in (1, 2, 3)
    ]
    assert own == ["333000", "333000", "444000"]
    alter(shared_cluster, 1, ResourceType.BROKER, "", log_retention_ms=None)


def test_what_was_changed_while_a_broker_was_away_holds_when_it_is_back(
    shared_cluster: Cluster,
) -> None:
    make_topic(shared_cluster, "meanwhile", {0: [1, 2, 3]})
    shared_cluster.stop(2)
    alter(shared_cluster, 1, ResourceType.TOPIC, "meanwhile", retention_ms="555000")
    shared_cluster.start(2)
    everywhere(shared_cluster, ResourceType.TOPIC, "meanwhile", "retention.ms", "555000")
