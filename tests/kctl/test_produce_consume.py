"""`kctl produce` and `kctl consume` on our broker, through librdkafka."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl
from tests.support.processes import free_port
from tests.support.streaming import Run, kctl_on, quick_groups_broker

BINARY = [
    {"key": "k", "value": "v", "headers": [{"key": "h", "value": "1"}, {"key": "h", "value": "2"}]},
    {"key": None, "value": "AP/+", "value_encoding": "base64"},
    {"key": "tombstone", "value": None},
    {"key": "", "value": "", "headers": [{"key": "null", "value": None}], "timestamp": 1234567},
]


@pytest.fixture(scope="module")
def stream_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with quick_groups_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def run(stream_broker: RunningBroker) -> Run:
    """kctl with the module's broker as its cluster."""
    return kctl_on(stream_broker)


def topic(run: Run, name: str, partitions: int = 1) -> str:
    assert run("topics", "create", name, "-p", str(partitions)).exit_code == 0
    return name


def consumed(run: Run, *args: str) -> list[dict[str, Any]]:
    result = run("consume", *args, "--exit", "-o", "jsonl")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.output.splitlines()]


def test_lines_with_keys_are_produced_and_consumed(run: Run) -> None:
    name = topic(run, "lines")
    written = run("produce", name, "-K", ":", stdin="a:1\nb:2\n")
    assert (written.exit_code, written.output) == (0, "")
    assert "2 records written in 1 partition" in written.stderr
    assert run("produce", name, "-K", ":", "-k", "-", stdin="no key\n").exit_code == 0
    read = run("consume", name, "--exit", "--format", r"%o %k=%s\n")
    assert read.output == "0 a=1\n1 b=2\n2 -=no key\n"


def test_line_without_the_key_separator_is_refused(run: Run) -> None:
    name = topic(run, "no-separator")
    result = run("produce", name, "-K", ":", stdin="no key\n")
    assert (result.exit_code, "-:1: no key separator ':'" in result.stderr) == (1, True)
    assert run("consume", name, "--exit").output == ""


def test_topic_that_does_not_exist_is_created_only_on_request(run: Run) -> None:
    topic(run, "existing")
    for command in (("produce", "existin"), ("perf", "produce", "existin", "-n", "1")):
        result = run(*command, stdin="a\n")
        assert result.exit_code == 1
        assert "no such topic: 'existin'" in result.stderr
        assert "did you mean existing" in result.stderr
    assert "existin\n" not in run("topics", "list", "-o", "name").output
    created = run("produce", "made-on-request", "--auto-create", stdin="a\n")
    assert created.exit_code == 0, created.stderr
    assert run("consume", "made-on-request", "--exit").output == "a\n"


def test_records_are_produced_again_by_key_to_fewer_partitions(run: Run) -> None:
    source, target = topic(run, "six", 6), topic(run, "two", 2)
    keys = [f"key-{number}" for number in range(12)]
    run("produce", source, "-K", ":", stdin="".join(f"{key}:{key}\n" for key in keys))
    lines = run("consume", source, "--exit", "-o", "jsonl").output
    again = run("produce", target, "--input", "json", stdin=lines)
    assert again.exit_code == 0, again.stderr
    places = {record["key"]: record["partition"] for record in consumed(run, target)}
    assert places == {key: java_partition(key.encode(), 2) for key in keys}
    kept = run("produce", target, "--input", "json", "--keep-partitions", stdin=lines)
    assert (kept.exit_code, "_UNKNOWN_PARTITION" in kept.stderr) == (1, True)


@pytest.mark.parametrize("partitioner", ["java", "librdkafka"])
def test_explained_partition_is_the_one_that_is_written(run: Run, partitioner: str) -> None:
    name = topic(run, f"explained-{partitioner}", 5)
    lines = "".join(f"{'k' * length}:v\n" for length in range(1, 14))
    words = ("produce", name, "-K", ":", "--partitioner", partitioner)
    rows = run(*words, "--explain", "-o", "json", stdin=lines).json
    assert consumed(run, name) == []
    assert run(*words, stdin=lines).exit_code == 0
    written = {record["key"]: record["partition"] for record in consumed(run, name)}
    assert {row["key"]: row["partition"] for row in rows} == written
    given = run("produce", name, "-p", "7", "--explain", "-o", "json", stdin="a\n").json
    assert given[0]["reason"] == "given, but not below 5"
    none = run("produce", name, "--explain", "-o", "json", stdin="a\n").json
    assert (none[0]["partition"], none[0]["reason"].split(":")[0]) == (None, "no key")


def test_options_of_the_console_tools_are_accepted(run: Run) -> None:
    name = topic(run, "console")
    words = ["--property", "parse.key=true", "--property", "null.marker=NULL"]
    assert run("produce", name, *words, stdin="a\t1\nb\tNULL\n").exit_code == 0
    more = ["--property", "parse.key=true", "--property", "key.separator=:"]
    assert run("produce", name, *more, stdin="c:3\n").exit_code == 0
    # Long enough for a busy machine: the third record ends it. See --idle for what silence does.
    words = ["--topic", name, "--from-beginning", "--timeout-ms", "20000", "--max-messages", "3"]
    read = run("consume", *words, "--format", "kafka", "--property", "print.key=true")
    assert read.output == "a\t1\nb\tnull\nc\t3\n"
    assert run("consume").exit_code == 2


def test_produce_reports_partitions_and_offsets_as_json(run: Run) -> None:
    name = topic(run, "where", 2)
    result = run("produce", name, "-p", "1", "-o", "json", stdin="a\nb\n")
    assert result.json == [
        {"topic": name, "partition": 1, "records": 2, "first_offset": 0, "last_offset": 1}
    ]


def test_json_lines_survive_a_round_trip(run: Run) -> None:
    first, second = topic(run, "trip-1"), topic(run, "trip-2")
    lines = "".join(json.dumps(record) + "\n" for record in BINARY)
    assert run("produce", first, "--input", "json", stdin=lines).exit_code == 0
    once = run("consume", first, "--exit", "-o", "jsonl").output
    assert run("produce", second, "--input", "json", stdin=once).exit_code == 0
    again = consumed(run, second)
    assert [record | {"topic": first} for record in again] == list(
        map(json.loads, once.split("\n")[:-1])
    )
    assert [record["value"] for record in again] == ["v", "AP/+", None, ""]
    assert (again[3]["key"], again[3]["timestamp"]) == ("", 1234567)
    assert [header["value"] for header in again[0]["headers"]] == ["1", "2"]


def test_whole_files_and_other_delimiters(run: Run, tmp_path: Path) -> None:
    name = topic(run, "files")
    (tmp_path / "one").write_bytes(b"\x00\n\xff")
    (tmp_path / "many").write_bytes(b"a||b||")
    whole = run("produce", name, str(tmp_path / "one"), "-i", "whole", "-k", "one", "-H", "t=x")
    assert whole.exit_code == 0
    assert run("produce", name, str(tmp_path / "many"), "-D", "||").exit_code == 0
    records = consumed(run, name)
    assert [record["value"] for record in records] == ["AAr/", "a", "b"]
    assert records[0]["headers"] == [{"key": "t", "value": "x", "value_encoding": "utf-8"}]


def test_partitioners_hash_keys_like_java_or_librdkafka(run: Run) -> None:
    name = topic(run, "hashes", 6)
    keys = [f"key-{number}" for number in range(8)]
    lines = "".join(f"{key}:{key}\n" for key in keys)
    assert run("produce", name, "-K", ":", stdin=lines).exit_code == 0
    places = {record["key"]: record["partition"] for record in consumed(run, name)}
    assert [places[key] for key in keys] == [java_partition(key.encode(), 6) for key in keys]
    run("produce", name, "-K", ":", "--partitioner", "librdkafka", stdin=lines)
    again = {record["key"]: record["partition"] for record in consumed(run, name, "--from", "-8")}
    assert again != places


def java_partition(key: bytes, partitions: int) -> int:
    """Kafka's murmur2 (seed 0x9747b28c) without the sign, modulo the number of partitions."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for index in range(0, whole, 4):
        k = int.from_bytes(key[index : index + 4], "little") * m & mask
        value = value * m & mask ^ (k ^ k >> 24) * m & mask
    if tail := key[whole:]:
        value = (value ^ int.from_bytes(tail, "little")) * m & mask
    value = (value ^ value >> 13) * m & mask
    return ((value ^ value >> 15) & 0x7FFFFFFF) % partitions


def test_round_robin_distributes_evenly(run: Run) -> None:
    name = topic(run, "robin", 3)
    lines = "".join(f"same:{number}\n" for number in range(9))
    result = run(
        "produce", name, "-K", ":", "--partitioner", "round-robin", "-o", "json", stdin=lines
    )
    assert [row["records"] for row in result.json] == [3, 3, 3]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_sync_acks_and_compression_write_all_records(run: Run, acks: str, compression: str) -> None:
    name = topic(run, f"acks-{acks}-{compression}")
    lines = "".join(f"{number}\n" for number in range(20))
    result = run("produce", name, "--sync", "--acks", acks, "-z", compression, stdin=lines)
    assert result.exit_code == 0
    assert run("consume", name, "--max-messages", "20").output == lines


def test_transaction_is_visible_and_its_markers_do_not_block_consume(run: Run) -> None:
    name = topic(run, "txn")
    result = run("produce", name, "--transactional-id", "loader", stdin="a\nb\n")
    assert result.exit_code == 0, result.stderr
    assert run("consume", name, "--exit").output == "a\nb\n"
    assert run("consume", name, "--from", "-1", "--exit").output == ""  # the commit marker


def test_transaction_with_invalid_input_is_aborted(run: Run) -> None:
    name = topic(run, "txn-aborted")
    words = ["produce", name, "--transactional-id", "loader-2", "--input", "json"]
    result = run(*words, stdin='{"value": "a"}\nnot json\n')
    assert result.exit_code == 1
    assert "-:2: not JSON" in result.stderr
    assert run("consume", name, "--exit").output == ""


def test_dry_run_reads_everything_and_sends_nothing(run: Run) -> None:
    name = topic(run, "dry")
    result = run("produce", name, "--dry-run", stdin="a\nb\n")
    assert (result.exit_code, "2 valid records" in result.stderr) == (0, True)
    assert run("consume", name, "--exit").output == ""


def test_positions_select_records(run: Run) -> None:
    name = topic(run, "positions")
    records = [{"value": str(n), "timestamp": 1_000_000 + 1000 * n} for n in range(10)]
    run("produce", name, "-i", "json", stdin="".join(json.dumps(r) + "\n" for r in records))

    def values(*args: str) -> str:
        return "".join(run("consume", name, "--exit", *args).output.split())

    assert values() == "0123456789"
    assert values("--from", "7") == "789"
    assert values("--from", "-2") == "89"
    assert values("--from", "2:4") == "23"
    assert values("--from", "+8") == "89"
    assert values("--from", "@1005000") == "56789"
    assert values("--from", "@1005000", "--to", "@1006500") == "56"
    assert values("--from", "@1005000:@1006500") == "56"
    assert values("--from", "-15m") == ""  # the records are from 1970
    assert values("--from-beginning", "--to", "1") == "0"
    assert values("-n", "3") == "012"
    assert values("--grep", "v:[02468]", "-n", "2") == "02"


def test_output_formats_of_consume(run: Run) -> None:
    name = topic(run, "formats")
    run("produce", name, "-K", ":", "--timestamp", "1970-01-01T00:00:01Z", stdin="k:a,b\n")
    assert run("consume", name, "-e", "-o", "csv").output == (
        "topic,partition,offset,timestamp,key,value,headers\n"
        'formats,0,0,1970-01-01T00:00:01.000Z,k,"a,b",\n'
    )
    assert run("consume", name, "-e", "-o", "name").output == "formats-0@0\n"
    wide = run("consume", name, "-e", "-o", "wide").output
    assert wide == "formats-0@0\t1970-01-01T00:00:01.000Z\tk\ta,b\n"
    kafka = run("consume", name, "-e", "-f", "kafka", "-X", "print.timestamp=true")
    assert kafka.output == "CreateTime:1000\ta,b\n"
    assert kafka.stderr == "Processed a total of 1 messages\n"
    assert run("consume", name, "-e", "-o", "yaml").exit_code == 2


def test_group_continues_and_commits_only_shown_records(run: Run) -> None:
    name = topic(run, "grouped")
    run("produce", name, stdin="a\nb\nc\n")
    words = ["consume", name, "--group", "reader"]
    assert run(*words, "-n", "2").output == "a\nb\n"
    assert run(*words, "--exit", "--no-commit").output == "c\n"
    assert run(*words, "--exit").output == "c\n"
    assert run(*words, "--exit").output == ""


def test_idle_timeout_ends_consume(run: Run) -> None:
    name = topic(run, "idle")
    result = run("consume", name, "--from", "end", "--idle", "0.2")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ["consume", "any", "--from", "soon"],
        ["consume", "any", "--format", "%z"],
        ["consume", "any", "--grep", "v:("],
        ["consume", "any", "--from", "stored"],
        ["consume", "any", "--group", "g", "--partition", "0"],
        ["consume", "any", "--group", "g", "--to", "5"],
        ["produce", "any", "-K", ""],
        ["produce", "any", "-H", "=x"],
        ["produce", "any", "--timestamp", "later"],
    ],
)
def test_invalid_arguments_are_usage_errors(run: Run, words: list[str]) -> None:
    assert run(*words).exit_code == 2


def test_unknown_topic_or_partition_is_named(run: Run, tmp_path: Path) -> None:
    missing = run("consume", "nowhere", "--exit")
    assert (missing.exit_code, "'nowhere'" in missing.stderr) == (1, True)
    name = topic(run, "small")
    assert "no partition 7" in run("consume", name, "-e", "-p", "7").stderr
    assert "cannot read" in run("produce", name, str(tmp_path / "none")).stderr
    assert "-X" in run("produce", name, "-X", "no.such=1", stdin="a\n").stderr


def test_timestamp_that_librdkafka_would_replace_is_refused(run: Run) -> None:
    name = topic(run, "epoch")
    result = run("produce", name, "-i", "json", stdin='{"value": "a", "timestamp": 0}')
    assert (result.exit_code, "timestamp 0" in result.stderr) == (1, True)


def test_unreachable_cluster_is_reported_quickly(kctl: Kctl) -> None:
    address = f"127.0.0.1:{free_port()}"
    for words in (["produce", "t"], ["consume", "t"]):
        result = kctl(*words, "-b", address, stdin="")
        assert (result.exit_code, address in result.stderr) == (1, True)


def test_topics_that_match_a_pattern_are_read_together(run: Run) -> None:
    for name in ("fit.a", "fit.b", "unfit"):
        run("produce", topic(run, name), stdin=f"{name}\n")
    words = ["--exit", "-f", "%t %s\\n"]
    both = {"fit.a fit.a", "fit.b fit.b"}
    assert set(run("consume", r"fit\..", "--regex", *words).output.splitlines()) == both
    assert set(run("consume", "--include", "fit.a,fit.b", *words).output.splitlines()) == both
    named = run("consume", "fit.a", "fit.b", *words).output.splitlines()
    assert set(named) == both
    assert set(run("consume", r"fit\..", "-r", "-g", "fits", *words).output.splitlines()) == both


def test_pattern_does_not_match_internal_topics(run: Run) -> None:
    run("produce", topic(run, "only"), stdin="a\n")
    run("consume", "only", "--group", "maker", "--exit")
    assert run("topics", "list", "-o", "name").output.count("__consumer_offsets")
    result = run("consume", "only|__consumer.*", "-r", "--exit", "-f", "%t\\n")
    assert result.output == "only\n"
    grouped = run("consume", "only|__consumer.*", "-r", "-g", "g", "--exit", "-f", "%t\\n")
    assert grouped.output == "only\n"


def test_pattern_that_matches_no_topic_is_an_error(run: Run) -> None:
    result = run("consume", "nothing.*", "--regex", "--exit")
    assert (result.exit_code, "no topic matches 'nothing.*'" in result.stderr) == (1, True)
    assert run("consume", "(", "--regex").exit_code == 2


def test_ctrl_c_ends_consume_after_printing_all_records(
    run: Run, stream_broker: RunningBroker
) -> None:
    name = topic(run, "interrupted")
    run("produce", name, stdin="a\n")
    words = [sys.executable, "-m", "kctl", "consume", name, "--group", "interrupted"]
    environ = {**os.environ, "KCTL_BOOTSTRAP_SERVERS": stream_broker.bootstrap_servers}
    with subprocess.Popen(
        words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "a\n"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    assert (process.returncode, rest, errors) == (130, "", "")
    assert run("consume", name, "--group", "interrupted", "--exit").output == ""


def test_json_documents_that_are_no_records_are_not_written_as_nulls(run: Run) -> None:
    assert run("topics", "create", "documents").exit_code == 0
    result = run("produce", "documents", "--input", "json", stdin='{"foo": 1}\n')
    assert result.exit_code == 1
    assert "neither key nor value nor headers; --input lines" in result.stderr
    assert run("consume", "documents", "--exit").output == ""


def test_last_records_are_the_newest_of_all_partitions(run: Run) -> None:
    name = topic(run, "newest", 3)
    lines = [
        json.dumps({"value": str(number), "timestamp": 1000 + number, "partition": number % 3})
        for number in range(30)
    ]
    words = ("produce", name, "--input", "json", "--keep-partitions")
    assert run(*words, stdin="\n".join(lines) + "\n").exit_code == 0
    last = ("consume", name, "--last")
    assert run(*last, "4").output == "29\n28\n27\n26\n"
    assert run(*last, "2", "-p", "1").output == "28\n25\n"
    assert len(run(*last, "100").output.splitlines()) == 30
    assert run(*last, "2", "--grep", "v:^1.$").output == "19\n18\n"
    assert run(*last, "2", "--from", "start").exit_code == 2


def test_last_records_are_found_behind_transaction_markers(run: Run) -> None:
    name = topic(run, "newest-txn")
    for number in range(4):
        words = ("produce", name, "--transactional-id", "newest-loader")
        assert run(*words, stdin=f"{number}\n").exit_code == 0
    assert run("consume", name, "--last", "3").output == "3\n2\n1\n"


def test_records_of_internal_topics_are_decoded(run: Run) -> None:
    name = topic(run, "decoded")
    run("produce", name, "--transactional-id", "decoded-loader", stdin="a\n")
    run("consume", name, "--exit", "--group", "decoded-group")
    offsets = run("consume", "__consumer_offsets", "--exit", "-o", "jsonl").output.splitlines()
    found = [json.loads(line) for line in offsets]
    keys = [one["key"] for one in found if one["key_encoding"] == "json"]
    assert len(keys) == len(found)
    assert any("decoded-group" in str(key) and name in str(key) for key in keys)
    text = run("consume", "__transaction_state", "--exit", "-o", "wide").output
    assert '"decoded-loader"' in text
    assert "Ongoing" in text
    raw = run("consume", "__consumer_offsets", "--exit", "--format", "%S\\n").output
    assert all(line.lstrip("-").isdecimal() for line in raw.split())
