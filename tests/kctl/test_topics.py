"""`kctl topics` on our broker."""

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.model import Uuid
from kctl.model.configs import Config
from kctl.model.topics import Description, Partition, Topic
from kctl.views.topics import PartitionFilter, partition_rows, problems_of
from tests.support.broker import RunningBroker
from tests.support.golden_tools import golden_tool
from tests.support.kctl import Kctl, KctlResult

Run = Callable[..., KctlResult]


@pytest.fixture
def run(kctl: Kctl, shared_broker: RunningBroker, tmp_path: Path) -> Run:
    """kctl with the module's broker as its cluster."""
    env = {"KCTL_BOOTSTRAP_SERVERS": shared_broker.bootstrap_servers}
    return lambda *args, **more: kctl(*args, env={**env, **more})


def names(run: Run, *args: str) -> list[str]:
    return run("topics", "list", *args, "-o", "name").output.split()


def test_several_topics_are_created_with_layout_and_settings(run: Run) -> None:
    result = run("topics", "create", "make-a", "make-b", "-p", "3", "-c", "retention.ms=1000")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.output.splitlines()[1:] == ["make-a   created", "make-b   created"]
    (topic,) = run("topics", "describe", "make-b", "-o", "json").json
    assert (topic["partitions"][2]["partition"], topic["configs"]) == (2, {"retention.ms": "1000"})


def test_one_failed_creation_fails_the_run_but_not_the_others(run: Run) -> None:
    run("topics", "create", "there")
    result = run("topics", "create", "there", "not-there", "-o", "json")
    assert result.exit_code == 1
    assert [row["status"] for row in result.json] == ["failed", "created"]
    assert "TOPIC_ALREADY_EXISTS" in result.stderr
    again = run("topics", "create", "there", "not-there", "--if-not-exists", "-o", "json")
    assert [row["status"] for row in again.json] == ["already exists"] * 2


def test_dry_run_of_create_is_validated_by_the_broker(run: Run) -> None:
    result = run("topics", "create", "dry", "--dry-run", "-o", "json")
    assert result.json == [{"topic": "dry", "status": "would be created"}]
    assert "dry" not in names(run)
    refused = run("topics", "create", "dry", "--replication-factor", "9", "--dry-run")
    assert refused.exit_code == 1
    assert "INVALID_REPLICATION_FACTOR" in refused.stderr


def test_replicas_go_where_they_are_assigned(run: Run) -> None:
    broker_id = int(run("brokers", "list", "-o", "name").output)
    words = ["--replica-assignment", ",".join([str(broker_id)] * 3)]
    assert run("topics", "create", "assigned", *words).exit_code == 0
    (topic,) = run("topics", "describe", "assigned", "-o", "json").json
    assert [partition["replicas"] for partition in topic["partitions"]] == [[broker_id]] * 3
    both = run("topics", "create", "both", "--replica-assignment", "1", "-p", "1")
    assert both.exit_code == 2


def test_list_takes_names_patterns_and_kafkas_flag(run: Run) -> None:
    run("topics", "create", "list-a", "list-b", "other")
    assert names(run, "list-.*", "--regex") == ["list-a", "list-b"]
    assert names(run, "--topic", "list-a,other") == ["list-a", "other"]
    assert names(run, "list-a") == ["list-a"]
    missing = run("topics", "list", "list-a", "nope")
    assert missing.exit_code == 1
    assert "'nope'" in missing.stderr


def test_describe_shows_offsets_and_sizes_when_wide(run: Run, shared_broker: RunningBroker) -> None:
    run("topics", "create", "filled", "-p", "1")
    producer = Producer({"bootstrap.servers": shared_broker.bootstrap_servers})
    for number in range(5):
        producer.produce("filled", str(number).encode())
    assert producer.flush(10) == 0
    (topic,) = run("topics", "describe", "filled", "-o", "json").json
    (partition,) = topic["partitions"]
    assert (partition["log_start_offset"], partition["log_end_offset"]) == (0, 5)
    assert partition["records"] == 5
    assert partition["size_bytes"] > 0
    assert partition["status"] == "ok"
    wide = run("topics", "describe", "filled", "-o", "wide").output.splitlines()
    assert wide[0] == "filled: 1 partition, replication factor 1"
    assert "RECORDS" in wide[1]
    assert "RECORDS" not in run("topics", "describe", "filled").output


def test_describe_as_csv_has_a_line_per_partition(run: Run) -> None:
    run("topics", "create", "lines", "-p", "2")
    rows = list(csv.DictReader(io.StringIO(run("topics", "describe", "lines", "-o", "csv").output)))
    assert [(row["topic"], row["partition"]) for row in rows] == [("lines", "0"), ("lines", "1")]


def test_describe_by_id_finds_the_topic(run: Run) -> None:
    run("topics", "create", "by-id")
    (listed,) = run("topics", "list", "by-id", "-o", "json").json
    found = run("topics", "describe", "--topic-id", listed["topic_id"], "-o", "name")
    assert found.output == "by-id\n"
    unknown = run("topics", "describe", "--topic-id", str(Uuid.random()))
    assert unknown.exit_code == 1
    assert run("topics", "describe", "--topic-id", "short").exit_code == 2


def test_healthy_cluster_has_no_unhealthy_partitions(run: Run) -> None:
    run("topics", "create", "healthy")
    for flag in ("--under-replicated", "--unavailable", "--under-min-isr"):
        assert run("topics", "describe", flag, "-o", "json").json == []
    (at,) = run("topics", "describe", "healthy", "--at-min-isr-partitions", "-o", "json").json
    assert at["topic"] == "healthy"


def test_topics_with_overrides_are_those_with_settings_of_their_own(run: Run) -> None:
    run("topics", "create", "over", "-c", "segment.bytes=1048576")
    run("topics", "create", "plain")
    rows = run("topics", "describe", "--topics-with-overrides", "-o", "json").json
    own = {row["topic"]: row["configs"] for row in rows}
    assert own["over"] == ["segment.bytes=1048576"]
    assert "plain" not in own


def test_alter_shows_what_changes_and_changes_it(run: Run) -> None:
    run("topics", "create", "grow", "-p", "2", "-c", "retention.ms=1000")
    words = ["topics", "alter", "grow", "--partitions", "4", "--delete-config", "retention.ms"]
    dry = run(*words, "--dry-run", "-o", "json")
    assert [(row["config"], row["now"]) for row in dry.json] == [
        ("partitions", 2),
        ("retention.ms", "1000"),
    ]
    assert len(run("topics", "describe", "grow", "-o", "json").json[0]["partitions"]) == 2
    assert run(*words).exit_code == 1
    assert run(*words, "--yes").exit_code == 0
    (topic,) = run("topics", "describe", "grow", "-o", "json").json
    assert (len(topic["partitions"]), topic["configs"]) == (4, {})


def test_alter_to_fewer_partitions_shows_the_brokers_error(run: Run) -> None:
    run("topics", "create", "shrink", "-p", "3")
    result = run("topics", "alter", "shrink", "-p", "2", "--dry-run")
    assert result.exit_code == 1
    assert "currently has 3 partitions" in result.stderr


def test_alter_without_a_change_or_a_topic_is_a_usage_error(run: Run) -> None:
    assert run("topics", "alter", "anything").exit_code == 2
    assert run("topics", "alter", "--partitions", "3").exit_code == 2


def test_clone_has_the_layout_and_the_settings_of_its_source(run: Run) -> None:
    run("topics", "create", "source", "-p", "3", "-c", "retention.ms=1000")
    run("topics", "clone", "source", "copy", "--same-brokers", "-c", "segment.ms=5000")
    (copy,) = run("topics", "describe", "copy", "-o", "json").json
    assert len(copy["partitions"]) == 3
    assert copy["configs"] == {"retention.ms": "1000", "segment.ms": "5000"}
    missing = run("topics", "clone", "no-source", "copy")
    assert missing.exit_code == 1
    assert "no-source" in missing.stderr


def test_delete_needs_a_yes_and_then_deletes(run: Run) -> None:
    run("topics", "create", "del-a", "del-b")
    refused = run("topics", "delete", "del-.*", "--regex")
    assert (refused.exit_code, refused.output) == (1, "")
    assert "Delete 2 topics?" in refused.stderr
    plan = run("topics", "delete", "del-.*", "--regex", "--dry-run", "-o", "json").json
    assert [row["topic"] for row in plan] == ["del-a", "del-b"]
    done = run("topics", "delete", "del-a", "del-b", "--yes", "-o", "json").json
    assert [row["status"] for row in done] == ["deleted", "deleted"]
    assert not {"del-a", "del-b"} & set(names(run))


def test_delete_of_missing_topic_fails_unless_if_exists(run: Run) -> None:
    missing = run("topics", "delete", "never", "--yes")
    assert missing.exit_code == 1
    assert "'never'" in missing.stderr
    assert run("topics", "delete", "never", "--yes", "--if-exists").exit_code == 0
    assert run("topics", "delete", "--yes").exit_code == 2


def test_context_that_is_read_only_creates_and_deletes_nothing(
    run: Run, kctl: Kctl, shared_broker: RunningBroker, tmp_path: Path
) -> None:
    run("topics", "create", "kept")
    env = {"KCTL_CONFIG": str(tmp_path / "contexts.yaml")}
    servers = shared_broker.bootstrap_servers
    kctl("context", "set", "prod", "-b", servers, "--read-only", env=env)
    for words in (["create", "new"], ["delete", "kept", "--yes"]):
        result = kctl("topics", *words, env=env)
        assert result.exit_code == 1
        assert "read-only" in result.stderr
    assert "kept" in names(run)
    assert "new" not in names(run)


def test_error_texts_equal_kafkas_tool(run: Run) -> None:
    broker_id = run("brokers", "list", "-o", "name").output.strip()
    three = ",".join([broker_id] * 3)
    story = {
        "01-": ["create", "--topic", "orders", "-p", "6", "-c", "retention.ms=3600000"],
        "02-": ["create", "--topic", "manual", "--replica-assignment", three],
        "03-": ["create", "--topic", "orders"],
        "04-": ["create", "--topic", "orders", "--if-not-exists"],
        "05-": ["create", "--topic", "bad name!"],
        "07-": ["create", "--topic", "badcfg", "--config", "retention.ms=abc"],
        "08-": ["create", "--topic", "a.b_c"],
        "09-": ["list", "--topic", "orders,manual,a.b_c"],
        "12-": ["describe", "--topic", "nope"],
        "14-": ["alter", "--topic", "orders", "--partitions", "2", "--yes"],
        "56-": ["delete", "--topic", "nope", "--yes"],
    }
    for golden, words in story.items():
        expected = golden_tool(golden)
        result = run("topics", *words, "--format", "kafka")
        assert (result.output, result.exit_code) == (expected.text, expected.status), words


def test_list_for_kafka_is_a_name_a_line(run: Run) -> None:
    run("topics", "create", "zz-1", "zz-2")
    shown = run("topics", "list", "--topic", "zz-.*", "--format", "kafka")
    assert shown.output == "zz-1\nzz-2\n"
    assert run("topics", "list", "--topic", "none", "--format", "kafka").output == "\n"


def described(partition: Partition, min_isr: int, live: frozenset[int]) -> Description:
    config = Config("min.insync.replicas", str(min_isr), "x", False, False, "int", (), None)
    topic = Topic("t", None, False, (partition,))
    return Description([topic], {"t": [config]}, live)


@pytest.mark.parametrize(
    ("leader", "isr", "min_isr", "live", "troubles"),
    [
        (1, (1, 2, 3), 2, (1, 2, 3), []),
        (1, (1, 2), 2, (1, 2), ["under-replicated", "at-min-isr"]),
        (1, (1,), 2, (1,), ["under-min-isr", "under-replicated"]),
        (None, (1,), 1, (2,), ["unavailable", "under-min-isr", "under-replicated", "at-min-isr"]),
        (3, (1, 2, 3), 1, (1, 2), ["unavailable"]),
    ],
)
def test_problems_are_those_of_kafkas_tool(
    leader: int | None,
    isr: tuple[int, ...],
    min_isr: int,
    live: tuple[int, ...],
    troubles: list[str],
) -> None:
    partition = Partition(0, leader, 0, (1, 2, 3), isr)
    found = described(partition, min_isr, frozenset(live))
    assert problems_of(found, found.topics[0], partition) == troubles
    flags = ["under_replicated", "unavailable", "under_min_isr", "at_min_isr"]
    for flag in flags:
        shown = list(partition_rows(found, found.topics[0], PartitionFilter(**{flag: True})))
        assert bool(shown) == (flag.replace("_", "-") in troubles)


def test_replica_on_its_way_does_not_make_a_partition_under_replicated() -> None:
    moving = Partition(0, 1, 0, (1, 2, 3), (1, 2), adding=(3,), removing=())
    assert not moving.is_under_replicated
