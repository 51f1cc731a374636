"""kctl on Apache Kafka 4.x in KRaft mode: every command that reads, and what only KRaft has."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import wait_until
from tests.support.kctl import Kctl, run_kctl
from tests.support.kraft_kafka import KraftKafka, running_kraft

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

FEATURES = "org.apache.kafka.tools.FeatureCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"

READ_COMMANDS = [
    "cluster",
    "cluster id",
    "cluster describe -o tree",
    "brokers list",
    "quorum",
    "quorum status",
    "quorum replication",
    "features",
    "topics list",
    "topics describe read",
    "topics describe read -o wide",
    "topics configs read --all",
    "configs describe topic:read --all",
    "configs describe broker:1 --all",
    "configs describe brokers",
    "configs describe broker-logger:1",
    "configs diff topic:read topic:read",
    "configs alter client-metrics:producers --set interval.ms=60000 --dry-run",
    "offsets read",
    "offsets read --time earliest",
    "consume read --from start --exit",
    "groups list --lag",
    "groups list --type classic",
    "groups describe --all",
    "transactions list",
    "transactions hanging",
    "health",
    "api-versions",
    "api-versions --format kafka",
    "log-dirs",
    "log-dirs --by topic",
    "reassign list",
    "reassign plan read --brokers 1",
    "throttle list",
    "elect-leaders --all --dry-run",
    "replicas verify read",
    "users list",
    "quotas list",
]


@pytest.fixture(scope="module")
def servers(kraft_kafka: KraftKafka) -> str:
    """Addresses of a cluster with the topics `read` and `trimmed`, of 20 records each."""
    servers = kraft_kafka.bootstrap_servers
    lines = "".join(f"{number}\n" for number in range(20))
    for topic in ("read", "trimmed"):
        assert run_kctl("-b", servers, "topics", "create", topic, "-p", "2").exit_code == 0
        assert run_kctl("-b", servers, "produce", topic, stdin=lines).exit_code == 0
    return servers


@pytest.fixture(scope="module")
def groups(kraft_kafka: KraftKafka, servers: str) -> Iterator[str]:
    """A classic group, a consumer group of KIP-848 and a share group, each with one member."""
    common = ("--bootstrap-server", servers, "--topic", "read", "--group")
    new_protocol = ("--consumer-property", "group.protocol=consumer")
    start = kraft_kafka.started
    with (
        start(CONSUMER, *common, "g-classic", "--from-beginning") as classic,
        start(CONSUMER, *common, "g-new", "--from-beginning", *new_protocol) as new,
        start(SHARE_CONSUMER, *common, "g-share"),
    ):
        for consumer in (classic, new):
            consumer.wait_for_line(r"(\d+\n){20}")
        _wait_for_share_member(servers)
        yield servers


def _wait_for_share_member(servers: str) -> None:
    describe = ("-b", servers, "groups", "describe", "g-share", "--members", "-o", "json")

    def has_partitions() -> bool:
        result = run_kctl(*describe)
        return result.exit_code == 0 and result.json and result.json[0]["partitions"] == 2

    wait_until(has_partitions, "the member of the share group has its partitions", timeout_s=90)


@pytest.mark.parametrize("line", READ_COMMANDS)
def test_command_that_reads_works_on_kafka_4(kctl: Kctl, servers: str, line: str) -> None:
    result = kctl("-b", servers, *line.split())
    assert result.exit_code == 0, result.stderr
    assert "error" not in result.stderr


def test_topic_group_and_offset_changes_work_on_kafka_4(kctl: Kctl, servers: str) -> None:
    for line in (
        "topics create change -p 1",
        "topics alter change -p 3 --yes",
        "configs set topic:change retention.ms=86400000 --yes",
        "configs append topic:change cleanup.policy=compact --yes",
        "groups reset-offsets g-change --topic change --to-earliest --yes",
        "groups delete-offsets g-change --topic change --yes",
        "groups delete g-change --yes",
        "delete-records trimmed --all --yes",
        "quotas set --user alice producer_byte_rate=1000 --yes",
        "quotas delete --user alice producer_byte_rate --yes",
        "elect-leaders change",
        "topics delete change --yes",
    ):
        # A KRaft broker sees a change when it has read it from the metadata log, a little later.
        for _ in range(50):
            result = kctl("-b", servers, *line.split())
            if result.exit_code == 0:
                break
        assert result.exit_code == 0, (line, result.stderr)


def test_configs_of_groups_and_client_metrics_are_those_kafka_configs_prints(
    kctl: Kctl, kraft_kafka: KraftKafka, servers: str
) -> None:
    for entity, pair, option in (
        ("client-metrics:m1", "interval.ms=60000", ("--client-metrics", "m1")),
        ("group:g-configured", "consumer.session.timeout.ms=50000", ("--group", "g-configured")),
    ):
        assert kctl("-b", servers, "configs", "set", entity, pair, "--yes").exit_code == 0
        args = ("--bootstrap-server", servers, "--describe", *option)
        theirs = kraft_kafka.tool("kafka.admin.ConfigCommand", *args).stdout
        ours = kctl("-b", servers, "configs", "describe", *option, "--format", "kafka").output
        assert ours == theirs
        assert pair in ours
        key = pair.partition("=")[0]
        assert kctl("-b", servers, "configs", "delete", entity, key, "--yes").exit_code == 0
        assert kctl("-b", servers, "configs", "describe", entity, "-o", "json").json == []


def test_client_metrics_are_listed_as_kafka_configs_lists_them(
    kctl: Kctl, kraft_kafka: KraftKafka, servers: str
) -> None:
    pair = ("metrics=org.apache.kafka.producer.", "--yes")
    assert kctl("-b", servers, "configs", "set", "client-metrics:m2", *pair).exit_code == 0
    args = ("--describe", "--entity-type", "client-metrics")
    theirs = kraft_kafka.tool("kafka.admin.ConfigCommand", "--bootstrap-server", servers, *args)
    words = ("describe", "--entity-type", "client-metrics", "--format", "kafka")
    assert kctl("-b", servers, "configs", *words).output == theirs.stdout
    refused = kctl("-b", servers, "configs", "set", "client-metrics:m2", "interval.ms=5", "--yes")
    assert refused.exit_code == 1
    assert "interval must be between 100 and 3600000" in refused.stderr


def test_broker_that_has_left_is_unregistered(
    kctl: Kctl, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_kraft(tmp_path_factory.mktemp("left"), nodes=1) as cluster:
        servers = cluster.bootstrap_servers
        running = kctl("-b", servers, "cluster", "unregister", "1", "--yes")
        unknown = kctl("-b", servers, "cluster", "unregister", "7", "--yes")
        assert (running.exit_code, unknown.exit_code) == (1, 1)
        assert "broker 1 is running" in running.stderr
        assert "not currently registered" in unknown.stderr
        with cluster.another_broker(9) as broker:
            broker.stop()
        # The controller fences it after broker.session.timeout.ms, 9 s, if it was killed.
        wait_until(
            lambda: len(kctl("-b", servers, "brokers", "list", "-o", "json").json) == 1,
            "broker 9 has left",
            timeout_s=60,
        )
        dry = kctl("-b", servers, "cluster", "unregister", "9", "--dry-run")
        done = kctl("-b", servers, "cluster", "unregister", "9", "--yes")
        again = kctl("-b", servers, "cluster", "unregister", "9", "--yes")
    assert (dry.exit_code, done.exit_code, again.exit_code) == (0, 0, 1), dry.stderr
    assert "not currently registered" in again.stderr


def test_features_describe_prints_what_kafka_features_prints(
    kctl: Kctl, kraft_kafka: KraftKafka, servers: str
) -> None:
    theirs = kraft_kafka.tool(FEATURES, "--bootstrap-server", servers, "describe").stdout
    ours = kctl("-b", servers, "features", "describe", "--format", "kafka").output
    assert "metadata.version" in ours
    assert _without_epochs(ours) == _without_epochs(theirs)


def _without_epochs(text: str) -> str:
    """The epoch is the offset of the metadata log, which grows all the time."""
    return re.sub(r"Epoch: \d+", "Epoch: N", text)


@pytest.mark.parametrize(
    "arguments",
    [
        "upgrade --feature group.version=1 --dry-run",
        "upgrade --release-version 4.1 --dry-run",
        "downgrade --feature share.version=0 --dry-run",
        "downgrade --release-version 4.0 --dry-run",
        "downgrade --feature metadata.version=5 --dry-run",
        "disable --feature share.version --dry-run",
        "upgrade --feature metadata.version=99",
    ],
)
def test_feature_change_prints_what_kafka_features_prints(
    kctl: Kctl, kraft_kafka: KraftKafka, servers: str, arguments: str
) -> None:
    theirs = kraft_kafka.tool(FEATURES, "--bootstrap-server", servers, *arguments.split())
    words = [*arguments.split(), "--yes", "--format", "kafka"]
    ours = kctl("-b", servers, "features", *words)
    assert ours.output == theirs.stdout
    assert ours.exit_code == theirs.returncode
    if theirs.returncode:
        assert theirs.stderr.strip() in ours.stderr


@pytest.mark.parametrize("release", ["3.3-IV3", "3.9", "4.0-IV1", "4.0", "4.1", "4.2-IV1"])
def test_versions_are_those_of_kafka_features(
    kctl: Kctl, kraft_kafka: KraftKafka, servers: str, release: str
) -> None:
    args = ("--bootstrap-server", servers, "version-mapping", "--release-version", release)
    theirs = kraft_kafka.tool(FEATURES, *args).stdout
    assert kctl("features", "versions", release, "--format", "kafka").output == theirs


def test_feature_is_downgraded_and_upgraded_again(kctl: Kctl, kraft_kafka: KraftKafka) -> None:
    servers = kraft_kafka.bootstrap_servers
    name = "eligible.leader.replicas.version"
    for verb, level in (("downgrade", 0), ("upgrade", 1)):
        result = kctl("-b", servers, "features", verb, f"{name}={level}", "--yes", "-o", "json")
        assert result.exit_code == 0, result.stderr
        rows = kctl("-b", servers, "features", "-o", "json").json
        assert {row["feature"]: row["finalized_level"] for row in rows}[name] == level


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("upgrade x.version=1", "do not support x.version"),
        ("upgrade group.version", "is not FEATURE=LEVEL"),
        ("upgrade group.version=abc", "must be a number"),
        ("upgrade metadata.version=9.9", "not a metadata version"),
        ("upgrade group.version=1 group.version=1", "specified twice: group.version"),
        ("upgrade", "no feature to upgrade specified"),
        ("downgrade share.version=7 --dry-run", "only supports versions 0-1"),
        ("versions 1.0", "not a metadata version"),
    ],
)
def test_bad_feature_change_is_refused(
    kctl: Kctl, servers: str, arguments: str, message: str
) -> None:
    words = [] if arguments.startswith("versions") else ["--yes"]
    result = kctl("-b", servers, "features", *arguments.split(), *words)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert "internal" not in result.stderr


def test_quorum_prints_what_kafka_metadata_quorum_prints(
    kctl: Kctl, kraft_kafka: KraftKafka, servers: str
) -> None:
    for view in ("status", "replication"):
        args = ("--bootstrap-server", servers, "describe", f"--{view}")
        theirs = kraft_kafka.tool(QUORUM, *args).stdout
        ours = kctl("-b", servers, "quorum", view, "--format", "kafka").output
        assert _without_offsets(ours) == _without_offsets(theirs)
    assert "DirectoryId" in ours


def _without_offsets(text: str) -> str:
    """Offsets and times of the metadata log grow all the time; their widths may differ."""
    text = re.sub(r"(HighWatermark: +)\d+", r"\1N", text)
    return re.sub(r"\t(\d{2,} *)(?=\t)", "\tN", text)


def test_controller_is_the_leader_of_the_quorum(
    kctl: Kctl, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_kraft(tmp_path_factory.mktemp("three"), nodes=3) as cluster:
        servers = cluster.bootstrap_servers
        status = kctl("-b", servers, "quorum", "-o", "json").json
        # Metadata names a random broker: ten equal answers are no accident.
        for _ in range(10):
            found = kctl("-b", servers, "cluster", "-o", "json").json
            assert (found["controller_id"], found["kraft"]) == (status["leader_id"], True)
            assert found["controller_epoch"] == status["leader_epoch"]
            brokers = kctl("-b", servers, "brokers", "list", "-o", "json").json
            leaders = [row["id"] for row in brokers if row["controller"]]
            assert leaders == [status["leader_id"]]
        rows = kctl("-b", servers, "quorum", "replication", "-o", "json").json
        theirs = cluster.tool(QUORUM, "--bootstrap-server", servers, "describe", "--status").stdout
    assert sorted(row["role"] for row in rows) == ["follower", "follower", "leader"]
    assert f"LeaderId:               {status['leader_id']}\n" in theirs
    voters = json.loads(re.search(r"CurrentVoters: +(.*)", theirs)[1])  # type: ignore[index]
    assert {row["id"]: row["directory_id"] for row in rows} == {
        voter["id"]: voter["directoryId"] for voter in voters
    }


def test_groups_list_shows_the_type_of_each_group(kctl: Kctl, groups: str) -> None:
    rows = kctl("-b", groups, "groups", "list", "-o", "json").json
    types = {row["group"]: row["type"] for row in rows}
    assert types["g-classic"] == "classic"
    assert types["g-new"] == "consumer"
    assert types["g-share"] == "share"
    only = kctl("-b", groups, "groups", "list", "--type", "share", "-o", "name").output
    assert only == "g-share\n"


def test_group_of_kip_848_is_described_as_kafka_describes_it(
    kctl: Kctl, kraft_kafka: KraftKafka, groups: str
) -> None:
    args = ("--bootstrap-server", groups, "--describe", "--group", "g-new")
    theirs = kraft_kafka.tool(GROUPS, *args).stdout
    ours = kctl("-b", groups, "groups", "describe", "g-new", "--format", "kafka").output
    assert sorted(ours.split("\n")) == sorted(theirs.rstrip("\n").split("\n"))
    (state,) = kctl("-b", groups, "groups", "describe", "g-new", "--state", "-o", "json").json
    assert (state["type"], state["state"], state["assignor"]) == ("consumer", "Stable", "uniform")
    (member,) = kctl("-b", groups, "groups", "describe", "g-new", "--members", "-o", "json").json
    assert member["assignment"] == member["target_assignment"] == ["read-0", "read-1"]
    assert member["epoch"] == state["epoch"]


@pytest.mark.parametrize("view", ["--offsets", "--members", "--state"])
@pytest.mark.parametrize("verbose", [False, True])
def test_share_group_is_described_as_kafka_share_groups_describes_it(
    kctl: Kctl, kraft_kafka: KraftKafka, groups: str, view: str, verbose: bool
) -> None:
    args = ["--bootstrap-server", groups, "--describe", "--group", "g-share", view]
    theirs = kraft_kafka.tool(SHARE_GROUPS, *args, *(["--verbose"] if verbose else [])).stdout
    words = ["groups", "describe", "g-share", view, "--format", "kafka"]
    ours = kctl("-b", groups, *words, *(["-v"] if verbose else [])).output
    assert ours == theirs


def test_offsets_of_a_share_group_cannot_be_reset(kctl: Kctl, groups: str) -> None:
    words = "groups reset-offsets g-share --topic read --to-earliest --yes"
    result = kctl("-b", groups, *words.split())
    assert result.exit_code == 1
    assert "g-share is a share group" in result.stderr


def test_share_group_without_members_is_described_and_deleted(
    kctl: Kctl, kraft_kafka: KraftKafka, servers: str
) -> None:
    common = ("--bootstrap-server", servers, "--topic", "read", "--group", "g-left")
    describe = ("-b", servers, "groups", "describe", "g-left")
    with kraft_kafka.started(SHARE_CONSUMER, *common):
        for _ in range(300):
            members = kctl(*describe, "--members", "-o", "json")
            if members.exit_code == 0 and members.json and members.json[0]["partitions"] == 2:
                break
    for _ in range(300):
        if kctl(*describe, "--state", "-o", "json").json[0]["state"] == "Empty":
            break
    args = ("--bootstrap-server", servers, "--describe", "--group", "g-left")
    theirs = kraft_kafka.tool(SHARE_GROUPS, *args).stdout
    assert kctl(*describe, "--format", "kafka").output == theirs
    deleted = kctl("-b", servers, "groups", "delete", "g-left", "--yes")
    assert deleted.exit_code == 0, deleted.stderr
    assert "no such group" in kctl(*describe).stderr


def test_all_groups_to_delete_or_reset_are_consumer_groups(kctl: Kctl, groups: str) -> None:
    result = kctl("-b", groups, "groups", "delete", "--all", "--dry-run", "-o", "json")
    assert "g-share" not in {row["group"] for row in result.json}


def test_address_of_a_controller_is_recognised(kctl: Kctl, kraft_kafka: KraftKafka) -> None:
    controller = f"127.0.0.1:{kraft_kafka.nodes[0].controller_port}"
    for words in (("topics", "list"), ("cluster",), ("quorum", "status")):
        refused = kctl("-b", controller, *words)
        assert refused.exit_code == 1
        assert "the listener of a KRaft controller" in refused.stderr


def test_share_group_states_are_decoded_as_kafka_dump_log_decodes_them(
    kctl: Kctl, kraft_kafka: KraftKafka, groups: str, tmp_path: Path
) -> None:
    assert kctl("-b", groups, "groups", "list", "--type", "share", "-o", "name").output
    seen = 0
    for path in sorted((kraft_kafka.directory / "data-1").glob("__share_group_state-*/*.log")):
        copy = tmp_path / path.parent.name / path.name  # the log grows
        copy.parent.mkdir()
        shutil.copy(path, copy)
        args = ("--share-group-state-decoder", "--files", str(copy))
        theirs = kraft_kafka.tool("kafka.tools.DumpLogSegments", *args)
        assert kctl("dump-log", "--format", "kafka", *args).output == theirs.stdout
        seen += theirs.stdout.count('"groupId":"g-share"')
    assert seen
