"""docs/tools.md: every script of Kafka has a row, and what the rows claim is true."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kctl.docs.tree import walk_commands
from tests.support.kctl import Kctl
from tests.support.kraft_kafka import KraftKafka
from tests.support.real_kafka import RealKafka

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tools.md"

SCRIPTS_OF_4_1 = [
    "connect-distributed",
    "connect-mirror-maker",
    "connect-plugin-path",
    "connect-standalone",
    "kafka-acls",
    "kafka-broker-api-versions",
    "kafka-client-metrics",
    "kafka-cluster",
    "kafka-configs",
    "kafka-console-consumer",
    "kafka-console-producer",
    "kafka-console-share-consumer",
    "kafka-consumer-groups",
    "kafka-consumer-perf-test",
    "kafka-delegation-tokens",
    "kafka-delete-records",
    "kafka-dump-log",
    "kafka-e2e-latency",
    "kafka-features",
    "kafka-get-offsets",
    "kafka-groups",
    "kafka-jmx",
    "kafka-leader-election",
    "kafka-log-dirs",
    "kafka-metadata-quorum",
    "kafka-metadata-shell",
    "kafka-producer-perf-test",
    "kafka-reassign-partitions",
    "kafka-replica-verification",
    "kafka-run-class",
    "kafka-server-start",
    "kafka-server-stop",
    "kafka-share-consumer-perf-test",
    "kafka-share-groups",
    "kafka-storage",
    "kafka-streams-application-reset",
    "kafka-streams-groups",
    "kafka-topics",
    "kafka-transactions",
    "kafka-verifiable-consumer",
    "kafka-verifiable-producer",
    "kafka-verifiable-share-consumer",
    "trogdor",
]
SCRIPTS_OF_3_9_ONLY = [
    "kafka-mirror-maker",
    "zookeeper-security-migration",
    "zookeeper-server-start",
    "zookeeper-server-stop",
    "zookeeper-shell",
]

COMPARED_BY = {
    "kafka-acls": "test_acls_print_what_kafka_acls_prints",
    "kafka-broker-api-versions": "test_api_versions_output_equals_kafka_broker_api_versions",
    "kafka-client-metrics": "test_client_metrics_are_those_of_kafka_client_metrics",
    "kafka-cluster": "test_cluster_id_output_equals_kafka_cluster",
    "kafka-configs": "test_configs_text_equals_kafkas_tool",
    "kafka-console-consumer": "test_consume_output_equals_kafka_console_consumer",
    "kafka-console-producer": "test_produced_lines_are_those_of_kafka_console_producer",
    "kafka-consumer-groups": "test_groups_text_equals_kafkas_tool",
    "kafka-consumer-perf-test": "test_perf_runs_and_its_lines_look_like_kafkas",
    "kafka-delegation-tokens": "test_tokens_print_what_kafka_delegation_tokens_prints",
    "kafka-delete-records": "test_delete_records_text_equals_kafkas_tool",
    "kafka-dump-log": "test_unusual_records_are_printed_alike",
    "kafka-e2e-latency": "test_perf_runs_and_its_lines_look_like_kafkas",
    "kafka-features": "test_features_describe_prints_what_kafka_features_prints",
    "kafka-get-offsets": "test_offsets_text_equals_kafkas_tool",
    "kafka-groups": "test_groups_and_types_are_those_of_kafka_groups",
    "kafka-leader-election": "test_elections_text_equals_kafkas_tool",
    "kafka-log-dirs": "test_log_dirs_text_equals_kafkas_tool",
    "kafka-metadata-shell": "test_rows_of_the_metadata_log_name_the_topic",
    "kafka-metadata-quorum": "test_quorum_prints_what_kafka_metadata_quorum_prints",
    "kafka-producer-perf-test": "test_perf_runs_and_its_lines_look_like_kafkas",
    "kafka-reassign-partitions": "test_execute_list_verify_and_cancel_texts_equal_kafkas_tool",
    "kafka-replica-verification": "test_text_of_the_largest_lag_equals_kafkas_tool",
    "kafka-share-groups": "test_share_group_is_described_as_kafka_share_groups_describes_it",
    "kafka-streams-application-reset": "test_dry_run_prints_what_the_tool_prints",
    "kafka-topics": "test_topics_text_equals_kafkas_tool",
    "kafka-transactions": "test_tables_are_kafkas_own",
    "kafka-verifiable-consumer": "test_lines_are_those_of_the_verifiable_clients",
    "kafka-verifiable-producer": "test_lines_are_those_of_the_verifiable_clients",
    "zookeeper-shell": "test_children_are_those_of_zookeeper_shell",
}
"""The test that runs both on one broker, or compares with what the script printed there."""

NOT_COMPARABLE = {
    "kafka-jmx": "reads MBeans, not the admin port",
    "kafka-streams-groups": "no Java client of streams groups runs in the tests",
    "kafka-server-start": "starts another broker",
    "kafka-server-stop": "stops another broker",
    "zookeeper-server-start": "starts a server",
    "zookeeper-server-stop": "stops a server",
}


def _rows() -> dict[str, tuple[str, str]]:
    """By script: the commands and the remarks."""
    pattern = re.compile(
        r"^\| ((?:kafka|connect|zookeeper|trogdor)[\w-]*) \| (.*?) \| (.*?) ?\|$", re.MULTILINE
    )
    found = pattern.findall(PAGE.read_text())
    assert len(found) == len({script for script, _, _ in found})
    return {script: (commands, remarks) for script, commands, remarks in found}


def test_every_script_of_kafka_has_a_row() -> None:
    assert len(SCRIPTS_OF_4_1) == 43
    assert list(_rows()) == [*SCRIPTS_OF_4_1, *SCRIPTS_OF_3_9_ONLY]


def test_commands_of_the_page_exist() -> None:
    known = {" ".join(found.path) for found in walk_commands()}
    for command in re.findall(r"`kctl ([^`]*)`", PAGE.read_text()):
        words = [word for word in f"kctl {command}".split() if not word.startswith("-")]
        assert any(" ".join(words[:length]) in known for length in (3, 2)), command


def test_row_without_a_command_gives_the_reason() -> None:
    for script, (commands, remarks) in _rows().items():
        assert ("`kctl " in commands) != (commands == "none"), script
        assert "`kctl " in commands or len(remarks) > 10, script


def test_every_pair_that_can_be_compared_is_compared_by_a_test() -> None:
    pairs = {script for script, (commands, _) in _rows().items() if commands != "none"}
    assert pairs == COMPARED_BY.keys() | NOT_COMPARABLE.keys()
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }
    assert set(COMPARED_BY.values()) <= tests


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_commands_of_the_page_work(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("KCTL_")},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    block = block.replace("kctl dev up)", "kctl dev up --port 0)")  # another broker may have 9092
    script = f"trap 'kctl dev down >&2' EXIT\n{block}"
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"result": "exact"' in done.stdout


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_produced_lines_are_those_of_kafka_console_producer(
    kctl: Kctl, real_kafka: RealKafka
) -> None:
    servers, text = real_kafka.bootstrap_servers, "k1:v1\nk2:v2\nk3:\nk1:v4:x\n"
    read = []
    for name in ("console-theirs", "console-ours"):
        assert kctl("-b", servers, "topics", "create", name, "-p", "3").exit_code == 0
        if name == "console-ours":
            words = ("produce", name, "--property", "parse.key=true")
            result = kctl("-b", servers, *words, "--property", "key.separator=:", stdin=text)
            assert result.exit_code == 0, result.stderr
        else:
            args = ("--bootstrap-server", servers, "--topic", name, "--property", "parse.key=true")
            tool = "kafka.tools.ConsoleProducer"
            real_kafka.tool_with_input(tool, *args, "--property", "key.separator=:", text=text)
        rows = kctl("-b", servers, "consume", name, "--exit", "-o", "jsonl").output.splitlines()
        read.append(sorted(re.sub(r'"(topic|timestamp\w*)": *[^,}]+,?', "", row) for row in rows))
    assert read[0] == read[1]
    assert len(read[0]) == 4


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_children_are_those_of_zookeeper_shell(kctl: Kctl, real_kafka: RealKafka) -> None:
    shell = "org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka"
    done = real_kafka.tool(shell, "-server", real_kafka.zookeeper, "ls", "/brokers")
    theirs = re.findall(r"^\[(.*)\]$", done.stdout, re.MULTILINE)[-1].split(", ")
    ours = kctl("zk", "ls", "/brokers", "-z", real_kafka.zookeeper, "-o", "name").output.split()
    assert sorted(Path(name).name for name in ours) == sorted(theirs)


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_groups_and_types_are_those_of_kafka_groups(kctl: Kctl, kraft_kafka: KraftKafka) -> None:
    servers = kraft_kafka.bootstrap_servers
    assert kctl("-b", servers, "topics", "create", "grouped").exit_code == 0
    words = "groups reset-offsets g-listed --topic grouped --to-earliest --yes"
    assert kctl("-b", servers, *words.split()).exit_code == 0
    tool = "org.apache.kafka.tools.GroupsCommand"
    lines = kraft_kafka.tool(tool, "--bootstrap-server", servers, "--list").stdout.splitlines()
    theirs = {tuple(line.split()[:2]) for line in lines[1:] if line}
    rows = kctl("-b", servers, "groups", "list", "-o", "json").json
    assert {(row["group"], row["type"].capitalize()) for row in rows} == theirs
    assert ("g-listed", "Classic") in theirs


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_client_metrics_are_those_of_kafka_client_metrics(
    kctl: Kctl, kraft_kafka: KraftKafka
) -> None:
    servers = kraft_kafka.bootstrap_servers
    tool = "org.apache.kafka.tools.ClientMetricsCommand"
    args = ("--alter", "--name", "by-tool", "--metrics", "a.b.", "--interval", "30000")
    assert kraft_kafka.tool(tool, "--bootstrap-server", servers, *args).returncode == 0
    pairs = ("metrics=c.", "interval.ms=40000", "--yes")
    assert kctl("-b", servers, "configs", "set", "client-metrics:by-kctl", *pairs).exit_code == 0
    listed = kraft_kafka.tool(tool, "--bootstrap-server", servers, "--list").stdout.split()
    words = ("configs", "describe", "--entity-type", "client-metrics", "-o", "json")
    rows = kctl("-b", servers, *words).json
    assert {row["entity"].removeprefix("client-metric ") for row in rows} == set(listed)
    described = kraft_kafka.tool(tool, "--bootstrap-server", servers, "--describe").stdout
    for row in rows:
        assert f"  {row['config']}={row['value']}\n" in described


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_java_classes_do_what_they_do_in_the_console_tools(
    kctl: Kctl, real_kafka: RealKafka, tmp_path: Path
) -> None:
    servers, name = real_kafka.bootstrap_servers, "classes"
    config = tmp_path / "reader.properties"
    config.write_text("parse.headers=true\nparse.key=true\nnull.marker=NULL\n")
    lines = "a:1,b:NULL\tk1\tv1\nNULL\tk2\tv2\n"
    assert kctl("-b", servers, "topics", "create", name, "-p", "1").exit_code == 0
    tool = ("--bootstrap-server", servers, "--topic", name, "--reader-config", str(config))
    done = real_kafka.tool_with_input("kafka.tools.ConsoleProducer", *tool, text=lines)
    assert done.returncode == 0, done.stderr
    ours = kctl("-b", servers, "produce", name, "--reader-config", str(config), stdin=lines)
    assert ours.exit_code == 0, ours.stderr
    rows = kctl("-b", servers, "consume", name, "-e", "-o", "jsonl").output.splitlines()
    read = [json.loads(row) for row in rows]
    same = ("key", "value", "headers")
    assert [[row[field] for field in same] for row in read[:2]] == [
        [row[field] for field in same] for row in read[2:]
    ]
    reset = ("groups", "reset-offsets", "g-classes", "--topic", name, "--to-earliest", "--yes")
    assert kctl("-b", servers, *reset).exit_code == 0
    formatter = "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"
    words = ("--topic", "__consumer_offsets", "--from-beginning", "--formatter", formatter)
    theirs = real_kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", servers, *words, "--timeout-ms", "15000"),
    )
    ours = kctl("-b", servers, "consume", *words, "-e")
    assert sorted(ours.output.splitlines()) == sorted(theirs.stdout.splitlines())
    assert "g-classes" in ours.output
