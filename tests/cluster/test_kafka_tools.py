"""Kafka's own tools against a cluster of ours."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.model import TopicPartition
from tests.cluster.asking import in_sync, led_by, make_topic
from tests.support.cluster import Cluster, running_cluster, wait_until
from tests.support.real_kafka import java_command
from tests.support.zookeeper import ZooKeeper

TOPICS = "org.apache.kafka.tools.TopicCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSUME = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PRODUCE = "kafka.tools.ConsoleProducer"
CONFIGS = "kafka.admin.ConfigCommand"
VERIFY = "org.apache.kafka.tools.ReplicaVerificationTool"

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: ZooKeeper
) -> Iterator[Cluster]:
    """Three brokers whose leaders stay where tools have put them."""
    settings = {"auto.leader.rebalance.enable": "false"}
    directory = tmp_path_factory.mktemp("tools")
    with running_cluster(directory, zookeeper_server.fresh_chroot(), 3, settings) as cluster:
        yield cluster


def tool(cluster: Cluster, name: str, *args: str, stdin: str | None = None) -> str:
    """The output of one of Kafka's tools, which must succeed."""
    command = java_command(name, "--bootstrap-server", cluster.bootstrap_servers, *args)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, input=stdin)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def groups(cluster: Cluster, *args: str) -> str:
    """The output of kafka-consumer-groups, with a short timeout unless given."""
    return tool(cluster, GROUPS, "--timeout", "60000", *args)


def test_topics_are_created_described_altered_and_deleted(cluster: Cluster) -> None:
    made = ("--create", "--topic", "by-tool", "--partitions", "3", "--replication-factor", "3")
    assert "Created topic by-tool." in tool(cluster, TOPICS, *made)
    shown = tool(cluster, TOPICS, "--describe", "--topic", "by-tool")
    assert "PartitionCount: 3\tReplicationFactor: 3" in shown
    for leader, replicas in re.findall(r"Leader: (\d)\tReplicas: ([\d,]+)", shown):
        assert replicas.split(",")[0] == leader, "each leads what it is preferred for"
    tool(cluster, TOPICS, "--alter", "--topic", "by-tool", "--partitions", "5")
    wait_until(lambda: cluster.leader("by-tool", 4), "the fifth partition has a leader")
    tool(cluster, TOPICS, "--delete", "--topic", "by-tool")
    wait_until(lambda: cluster.znode("/brokers/topics/by-tool") is None, "it is gone")


def test_partitions_are_reassigned_and_the_tool_sees_them_done(
    cluster: Cluster, tmp_path: Path
) -> None:
    make_topic(cluster, "moved", {0: [1, 2]})
    plan = tmp_path / "plan.json"
    wanted = {"topic": "moved", "partition": 0, "replicas": [3, 2]}
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    args = ("--reassignment-json-file", str(plan))
    tool(cluster, REASSIGN, *args, "--execute")
    in_sync(cluster, TopicPartition("moved", 0), [2, 3])
    done = wait_until(
        lambda: "is completed" in (said := tool(cluster, REASSIGN, *args, "--verify")) and said,
        "the reassignment is complete",
        timeout_s=60,
    )
    assert "Reassignment of partition moved-0 is completed." in done
    listed = tool(cluster, REASSIGN, "--list")
    assert "No partition reassignments found." in listed


def test_preferred_leaders_are_elected(cluster: Cluster) -> None:
    make_topic(cluster, "preferred", {0: [2, 1, 3]})
    cluster.restart(2)
    in_sync(cluster, TopicPartition("preferred", 0), [1, 2, 3])
    led_by(cluster, TopicPartition("preferred", 0), 1, 3)
    args = ("--election-type", "preferred", "--topic", "preferred", "--partition", "0")
    said = tool(cluster, ELECT, *args)
    assert "Successfully completed leader election (PREFERRED) for partitions preferred-0" in said
    assert cluster.leader("preferred") == 2


def test_a_group_of_javas_consumer_is_listed_described_and_reset(cluster: Cluster) -> None:
    make_topic(cluster, "consumed", {0: [1, 2, 3], 1: [2, 3, 1]})
    lines = "".join(f"record {number}\n" for number in range(20))
    tool(cluster, PRODUCE, "--topic", "consumed", stdin=lines)
    args = ("--topic", "consumed", "--from-beginning", "--max-messages", "20")
    read = tool(cluster, CONSUME, *args, "--group", "java", "--timeout-ms", "30000")
    assert sorted(read.splitlines()) == sorted(lines.splitlines())
    assert "java" in groups(cluster, "--list").splitlines()
    shown = groups(cluster, "--describe", "--group", "java")
    lags = [int(row.split()[5]) for row in shown.splitlines() if row.startswith("java")]
    assert lags == [0, 0]
    reset = ("--reset-offsets", "--to-earliest", "--execute", "--group", "java")
    groups(cluster, *reset, "--topic", "consumed")
    again = groups(cluster, "--describe", "--group", "java")
    lags = [int(row.split()[5]) for row in again.splitlines() if row.startswith("java")]
    assert sum(lags) == 20


def test_replicas_are_the_same_to_kafkas_verification(cluster: Cluster) -> None:
    make_topic(cluster, "verified", {0: [1, 2, 3]})
    lines = "".join(f"{number}\n" for number in range(1000))
    tool(cluster, PRODUCE, "--topic", "verified", stdin=lines)
    wanted = ("--topics-include", "verified", "--report-interval-ms", "1000")
    command = java_command(VERIFY, "--broker-list", cluster.bootstrap_servers, *wanted)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        report = next(line for line in running.stdout if "max lag" in line and "verified-0" in line)
        running.terminate()
    assert "max lag is 0 for partition verified-0" in report


def test_dynamic_settings_of_one_broker_and_of_all(cluster: Cluster) -> None:
    def configs(*args: str) -> str:
        return tool(cluster, CONFIGS, "--entity-type", "brokers", *args)

    configs("--entity-default", "--alter", "--add-config", "log.retention.ms=77000")
    configs("--entity-name", "2", "--alter", "--add-config", "log.retention.ms=88000")
    told = configs("--entity-name", "2", "--describe")
    assert "log.retention.ms=88000" in told
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=77000" in told
