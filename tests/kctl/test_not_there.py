"""What does not exist is named as such, and nothing is made of it."""

import socket
import time
from pathlib import Path

import pytest

from tests.support.broker import RunningBroker
from tests.support.kctl import Kctl, KctlResult
from tests.support.streaming import Run


@pytest.fixture
def run(kctl: Kctl, shared_broker: RunningBroker) -> Run:
    """kctl on a broker with the topic `orders` of two partitions."""

    def on_broker(*args: str, stdin: str | None = None) -> KctlResult:
        return kctl(*args, "-b", shared_broker.bootstrap_servers, stdin=stdin)

    on_broker("topics", "create", "orders", "-p", "2", "--if-not-exists")
    return on_broker


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("transactions producers orders:77", "orders has no partition 77"),
        ("transactions hanging orders:77", "orders has no partition 77"),
        ("transactions producers orders --broker-id 99", "no such broker: 99"),
        ("elect-leaders orders:77 --yes", "orders has no partition 77"),
        ("elect-leaders --broker 99 --yes", "no such broker: 99"),
        ("elect-leaders ordes --yes", "did you mean orders"),
        ("configs describe broker:99", "no such broker: 99"),
        ("reassign cancel nosuch --yes", "no such topic: 'nosuch'"),
        ("topics delete zzz.* --regex --yes", "no topic matches 'zzz.*'"),
        ("topics create typo --replica-assignment 99", "no such broker: 99"),
        ("topics alter orders --replica-assignment 1001,1001,99 --yes", "no such broker: 99"),
        ("offsets ordes", "did you mean orders"),
        ("groups reset-offsets g --topic orders:99 --to-earliest", "orders has no partition 99"),
    ],
)
def test_missing_thing_is_named_with_status_1(run: Run, line: str, words: str) -> None:
    result = run(*line.split())
    assert (result.exit_code, words in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize("line", ["transactions list --state Foo", "groups list --state Foo"])
def test_unknown_state_is_a_usage_error(run: Run, line: str) -> None:
    assert run(*line.split()).exit_code == 2
    assert run(*line.split()[:-1], "empty").exit_code == 0


def test_topic_on_a_broker_that_is_not_there_is_not_created(run: Run) -> None:
    assert run("topics", "create", "ghost", "--replica-assignment", "0,99").exit_code == 1
    assert "ghost" not in run("topics", "list", "-o", "name").output


def test_existing_topic_tells_how_it_differs(run: Run) -> None:
    same = run("topics", "create", "orders", "-p", "2", "--if-not-exists", "-o", "json")
    assert same.json[0]["status"] == "already exists"
    other = run("topics", "create", "orders", "-p", "12", "--if-not-exists", "-o", "json")
    assert other.json[0]["status"] == "already exists, with 2 partitions instead of 12"


def test_preview_of_a_deletion_has_records_bytes_and_groups(run: Run) -> None:
    run("topics", "create", "doomed", "-p", "1")
    run("produce", "doomed", stdin="a\nb\n")
    run("groups", "reset-offsets", "readers", "--topic", "doomed", "--to-latest", "--execute")
    (row,) = run("topics", "delete", "doomed", "--dry-run", "-o", "json").json
    assert (row["records"], row["groups"]) == (2, ["readers"])
    assert row["bytes"] > 60


@pytest.mark.parametrize("is_listening", [True, False])
def test_zookeeper_that_does_not_answer_costs_the_timeout(kctl: Kctl, is_listening: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1] if is_listening else 1}"
        started_s = time.monotonic()
        result = kctl("zk", "ls", "-z", address, "--timeout", "1.5")
    assert (result.exit_code, "within 1.5 s" in result.stderr) == (4, True), result.stderr
    assert time.monotonic() - started_s < 9


def test_file_that_is_not_json_is_named_without_python(kctl: Kctl, tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    for text, words in (
        ("{", "line 1, column 2"),
        ("{}", "'partitions' is missing"),
        ("[]", "another structure"),
        (
            '{"partitions": [{"topic": "t", "partition": "x", "offset": 1}]}',
            "a value is not a number",
        ),
    ):
        path.write_text(text)
        result = kctl("delete-records", "--file", str(path), "--yes", "-b", "127.0.0.1:1")
        assert (result.exit_code, words in result.stderr) == (1, True), result.stderr
        assert "Error(" not in result.stderr


def test_configs_take_units(run: Run) -> None:
    words = ("-c", "retention.ms=7d", "-c", "segment.bytes=1MiB", "-c", "cleanup.policy=compact")
    assert run("topics", "create", "units", *words).exit_code == 0
    rows = run("configs", "describe", "topic:units", "-o", "json").json
    own = {row["config"]: row["value"] for row in rows}
    assert (own["retention.ms"], own["segment.bytes"]) == ("604800000", "1048576")
    refused = run("configs", "set", "topic:units", "retention.ms=soon", "--yes")
    assert (refused.exit_code, "retention.ms" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    "args",
    [
        ("consume", "orders", "--from", "10:5", "--exit"),
        ("context", "set", "two\nlines", "-b", "127.0.0.1:1"),
        ("dump-log", "repair", "a", "--to", "b", "--index-interval-bytes", "-5"),
    ],
)
def test_nonsense_is_a_usage_error(run: Run, args: tuple[str, ...]) -> None:
    assert run(*args).exit_code == 2
