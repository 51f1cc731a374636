"""`kctl offsets`, `delete-records` and `log-dirs` on our broker."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.model import TopicPartition
from kctl.cli.errors import CliError
from kctl.commands.delete_records import parse_offsets_file
from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl, KctlResult

Run = Callable[..., KctlResult]
START_MS = 1_700_000_000_000


@pytest.fixture
def run(kctl: Kctl, shared_broker: RunningBroker) -> Run:
    """kctl with the module's broker as its cluster."""
    env = {"KCTL_BOOTSTRAP_SERVERS": shared_broker.bootstrap_servers}
    return lambda *args, **more: kctl(*args, env=env, **more)


@pytest.fixture
def topic(run: Run, shared_broker: RunningBroker, request: pytest.FixtureRequest) -> Iterator[str]:
    """Two partitions; the first holds ten records, one a second from START_MS on."""
    name = request.node.originalname.removeprefix("test_")
    run("topics", "create", name, "-p", "2", "-c", "retention.ms=-1")
    fill(shared_broker, name)
    yield name
    run("topics", "delete", name, "--yes")


def fill(broker: RunningBroker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(10):
        moment = START_MS + 1000 * number
        producer.produce(topic, str(number).encode(), partition=0, timestamp=moment)
    assert producer.flush(10) == 0


def found(run: Run, *args: str) -> list[tuple[int, int | None]]:
    rows = run("offsets", *args, "-o", "json").json
    return [(row["partition"], row["offset"]) for row in rows]


def test_offsets_default_to_log_ends(run: Run, topic: str) -> None:
    assert found(run, topic) == [(0, 10), (1, 0)]
    assert found(run, topic, "--time", "earliest") == [(0, 0), (1, 0)]
    assert found(run, f"{topic}:0", "--time", "latest") == [(0, 10)]


def test_time_finds_the_first_record_that_is_not_older(run: Run, topic: str) -> None:
    assert found(run, topic, "--time", str(START_MS + 2500)) == [(0, 3), (1, None)]
    assert found(run, topic, "--time", "2023-11-14T22:13:20Z") == [(0, 0), (1, None)]
    assert found(run, topic, "--time", "-15m") == [(0, None), (1, None)]


def test_largest_timestamp_is_found_with_its_time(run: Run, topic: str) -> None:
    rows = run("offsets", f"{topic}:0", "--time", "max-timestamp", "-o", "json").json
    assert (rows[0]["offset"], rows[0]["timestamp"]) == (9, START_MS + 9000)
    assert rows[0]["time"] == "2023-11-14T22:13:29.000Z"


def test_offsets_for_kafka_leave_out_partitions_without_one(run: Run, topic: str) -> None:
    words = ["offsets", "--topic", topic, "--format", "kafka"]
    assert run(*words).output == f"{topic}:0:10\n{topic}:1:0\n"
    assert run(*words, "--time", str(START_MS + 9000)).output == f"{topic}:0:9\n"
    assert run(*words, "--partitions", "1").output == f"{topic}:1:0\n"


def test_no_matching_partition_is_an_error(run: Run) -> None:
    for words in (["nowhere"], ["--topic", "nowhere"], ["--topic-partitions", "nowhere"]):
        result = run("offsets", *words)
        assert result.exit_code == 1
        assert "no partition matches 'nowhere'\n" in result.stderr
    result = run("offsets", "--topic", "nowhere", "--partitions", "3")
    assert "no partition matches 'nowhere --partitions 3'\n" in result.stderr


def test_patterns_and_topics_are_not_mixed(run: Run) -> None:
    words = ["offsets", "--topic-partitions", "a:0", "--topic", "b"]
    assert run(*words).exit_code == 2


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_offset_beyond_the_log_end_is_refused_by_the_dry_run_too(
    run: Run, topic: str, how: str
) -> None:
    result = run("delete-records", f"{topic}:0", "--offset", "3000", how)
    assert (result.exit_code, result.output) == (1, "")
    assert "offset 3000 is beyond the log end" in result.stderr
    assert "OFFSET_OUT_OF_RANGE" in result.stderr


def test_records_before_an_offset_are_deleted_after_a_yes(run: Run, topic: str) -> None:
    words = ["delete-records", f"{topic}:0", "--offset", "4"]
    refused = run(*words)
    assert refused.exit_code == 1
    assert "Delete 4 records of 1 partition?" in refused.stderr
    (row,) = run(*words, "--dry-run", "-o", "json").json
    assert (row["log_start_offset"], row["before"], row["records"]) == (0, 4, 4)
    assert found(run, f"{topic}:0", "--time", "earliest") == [(0, 0)]
    (done,) = run(*words, "--yes", "-o", "json").json
    assert done["low_watermark"] == 4
    assert found(run, f"{topic}:0", "--time", "earliest") == [(0, 4)]


def test_records_before_a_time_are_deleted(run: Run, topic: str) -> None:
    run("delete-records", f"{topic}:0", "--time", str(START_MS + 2500), "--yes")
    assert found(run, f"{topic}:0", "--time", "earliest") == [(0, 3)]


def test_all_records_can_be_deleted(run: Run, topic: str) -> None:
    run("delete-records", topic, "--all", "--yes")
    assert found(run, topic, "--time", "earliest") == [(0, 10), (1, 0)]


def test_offsets_file_has_partitions_and_offsets(run: Run, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    entries = [{"topic": topic, "partition": 0, "offset": 2}]
    path.write_text(json.dumps({"partitions": entries, "version": 1}))
    words = ["delete-records", "--offset-json-file", str(path), "--yes", "--format", "kafka"]
    assert run(*words).output.splitlines()[2:] == [f"partition: {topic}-0\tlow_watermark: 2"]
    entries[0]["offset"] = 5
    stdin = json.dumps({"partitions": entries})
    assert run("delete-records", "--file", "-", "--yes", stdin=stdin).exit_code == 0
    assert found(run, f"{topic}:0", "--time", "earliest") == [(0, 5)]


def test_offset_beyond_the_end_is_refused_and_named(run: Run, topic: str) -> None:
    result = run("delete-records", f"{topic}:0", "--offset", "99", "--yes")
    assert result.exit_code == 1
    assert "OFFSET_OUT_OF_RANGE" in result.stderr


@pytest.mark.parametrize(
    "words", [[], ["--offset", "1", "--all"], ["--all"], ["--time", "yesterday"]]
)
def test_deletion_that_is_not_clear_is_a_usage_error(run: Run, words: list[str]) -> None:
    topic = ["nowhere"] if "yesterday" in words else []
    assert run("delete-records", *topic, *words).exit_code == 2


def test_deletion_of_missing_records_fails(run: Run) -> None:
    assert run("delete-records", "nowhere", "--all", "--yes").exit_code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a JSON file of offsets"),
        ("[]", "not a JSON file of offsets"),
        ('{"version": 1}', "partitions"),
        ('{"version": 2, "partitions": []}', "version 2"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "offset"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "offset": 1},'
            ' {"topic": "t", "partition": 0, "offset": 2}]}',
            "t-0",
        ),
    ],
)
def test_invalid_file_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(CliError, match=words):
        parse_offsets_file(text, "offsets.json")


def test_file_gives_the_offset_of_each_partition() -> None:
    text = '{"partitions": [{"topic": "t", "partition": 1, "offset": -1}]}'
    assert parse_offsets_file(text, "f") == {TopicPartition("t", 1): -1}


def test_log_dirs_show_every_replica_with_its_size(
    run: Run, topic: str, shared_broker: RunningBroker
) -> None:
    rows = run("log-dirs", topic, "-o", "json").json
    assert [(row["partition"], row["size_bytes"] > 0) for row in rows] == [(0, True), (1, False)]
    assert {row["log_dir"] for row in rows} == {str(shared_broker.log_dir)}
    missing = run("log-dirs", "nowhere")
    assert missing.exit_code == 1


def test_log_dirs_add_up_by_topic_directory_and_broker(run: Run, topic: str) -> None:
    by_topic = run("log-dirs", "--by", "topic", "-o", "json").json
    sizes = {row["topic"]: row["size_bytes"] for row in by_topic}
    (by_dir,) = run("log-dirs", "--by", "dir", "-o", "json").json
    (by_broker,) = run("log-dirs", "--by", "broker", "-o", "json").json
    assert sizes[topic] > 0
    assert by_dir["size_bytes"] == by_broker["size_bytes"] == sum(sizes.values())
    assert by_dir["total_bytes"] > by_dir["usable_bytes"] > 0


def test_log_dirs_for_kafka_is_its_json(run: Run, topic: str) -> None:
    lines = run("log-dirs", "--describe", "--topic-list", topic, "--format", "kafka").output
    (broker,) = json.loads(lines.splitlines()[2])["brokers"]
    (log_dir,) = broker["logDirs"]
    assert {part["partition"] for part in log_dir["partitions"]} == {f"{topic}-0", f"{topic}-1"}


def test_unknown_broker_is_named(run: Run) -> None:
    result = run("log-dirs", "--broker-list", "77")
    assert result.exit_code == 1
    assert "no such broker: 77" in result.stderr
    assert run("log-dirs", "--brokers", "one").exit_code == 2
