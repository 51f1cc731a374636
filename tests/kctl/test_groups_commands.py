"""`kctl groups` on our broker."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.support.broker import RunningBroker
from tests.support.streaming import Run, kctl_on, quick_groups_broker


@pytest.fixture(scope="module")
def group_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with quick_groups_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def run(group_broker: RunningBroker) -> Run:
    """kctl with the module's broker as its cluster."""
    return kctl_on(group_broker)


def read_all(run: Run, name: str, group: str, records: int = 5) -> None:
    """A topic of one partition with records from 1970, all of them read by a group."""
    run("topics", "create", name, "-p", "1")
    more(run, name, records)
    assert run("consume", name, "--group", group, "--exit").exit_code == 0


def more(run: Run, name: str, records: int, timestamp: str = "1000") -> None:
    lines = "".join(f"{number}\n" for number in range(records))
    assert run("produce", name, "--timestamp", timestamp, stdin=lines).exit_code == 0


def offset_of(run: Run, group: str) -> int | None:
    (row,) = run("groups", "describe", group, "-o", "json").json
    current: int | None = row["current_offset"]
    return current


@contextmanager
def member(broker: RunningBroker, topic: str, group: str, **settings: object) -> Iterator[None]:
    """A consumer that is in the group, polling, until the block ends."""
    own = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group}
    consumer = Consumer(
        {**own, **{key.replace("_", "."): value for key, value in settings.items()}}
    )
    assigned, done = threading.Event(), threading.Event()
    consumer.subscribe([topic], on_assign=lambda *_: assigned.set())

    def poll() -> None:
        while not done.is_set():
            consumer.poll(0.05)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        assert assigned.wait(20)
        yield
    finally:
        done.set()
        thread.join()


def test_list_names_groups_with_their_states(run: Run) -> None:
    read_all(run, "listed", "list-a")
    rows = run("groups", "list", "-o", "json").json
    (row,) = [row for row in rows if row["group"] == "list-a"]
    assert (row["state"], row["protocol_type"]) == ("Empty", "consumer")
    assert "list-a" in run("groups", "list", "--state", "empty", "-o", "name").output.split()
    assert "list-a" not in run("groups", "list", "--state", "Stable", "-o", "name").output.split()


def test_describe_shows_lag_in_records_and_in_time(run: Run) -> None:
    read_all(run, "behind", "lag-a")
    more(run, "behind", 2, "-1h")
    (row,) = run("groups", "describe", "lag-a", "-o", "json").json
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (5, 7, 2)
    assert 3_600_000 <= row["time_lag_ms"] < 3_700_000
    assert (row["time_lag"][:2], row["verdict"]) == ("1h", "unread")
    shown = run("groups", "describe", "lag-a")
    assert "lag-a: Empty, 0 members, lag 2 in 1 partition" in shown.stderr
    (quick,) = run("groups", "describe", "lag-a", "--no-time-lag", "-o", "json").json
    assert (quick["lag"], quick["time_lag"]) == (2, None)


def test_time_lag_is_found_inside_of_large_batches(run: Run) -> None:
    run("topics", "create", "large", "-p", "1")
    lines = "".join(
        json.dumps({"value": "x" * 30_000, "timestamp": 1000 + 1000 * number}) + "\n"
        for number in range(9)
    )
    assert run("produce", "large", "-i", "json", "-X", "linger.ms=500", stdin=lines).exit_code == 0
    words = ["groups", "reset-offsets", "large-g", "--topic", "large", "--to-offset"]
    times = []
    for offset in ("0", "7"):
        assert run(*words, offset, "--execute").exit_code == 0
        (row,) = run("groups", "describe", "large-g", "-o", "json").json
        times.append(row["time_lag_ms"])
    assert 6000 <= times[0] - times[1] <= 7000  # seven seconds less, and some time went by


def test_views_of_a_group_with_a_member(run: Run, group_broker: RunningBroker) -> None:
    read_all(run, "viewed", "views")
    with member(group_broker, "viewed", "views", client_id="me", group_instance_id="static-1"):
        (state,) = run("groups", "describe", "views", "--state", "-o", "json").json
        assert (state["state"], state["members"], state["assignor"]) == ("Stable", 1, "range")
        assert state["coordinator"] == group_broker.bootstrap_servers
        (row,) = run("groups", "describe", "views", "--members", "-o", "json").json
        assert (row["client_id"], row["group_instance_id"]) == ("me", "static-1")
        assert row["assignment"] == ["viewed-0"]
        (total,) = run("groups", "describe", "views", "--totals", "-o", "json").json
        assert (total["total_lag"], total["verdicts"]) == (0, ["ok"])
        (offsets,) = run("groups", "describe", "--group", "views", "-o", "json").json
        assert offsets["member_id"] == row["member_id"]
    assert run("groups", "describe", "views", "--members", "--state").exit_code == 2


def test_group_that_does_not_exist_is_named(run: Run) -> None:
    result = run("groups", "describe", "nobody")
    assert (result.exit_code, "'nobody'" in result.stderr) == (1, True)
    kafka = run("groups", "describe", "nobody", "--format", "kafka")
    assert kafka.output == "\nError: Consumer group 'nobody' does not exist.\n"
    assert run("groups", "describe").exit_code == 2


def test_fail_if_ends_with_status_3_when_it_is_so(run: Run) -> None:
    read_all(run, "checked", "check")
    more(run, "checked", 3)
    assert run("groups", "describe", "check", "--fail-if", "lag>3").exit_code == 0
    found = run("groups", "describe", "check", "--fail-if", "lag>2", "--fail-if", "members<1")
    assert found.exit_code == 3
    assert "check: lag>2; check: members<1" in found.stderr
    assert run("groups", "describe", "check", "--fail-if", "speed>2").exit_code == 2


def test_only_lagging_omits_partitions_without_lag(run: Run) -> None:
    read_all(run, "well", "wellness")
    words = ["groups", "describe", "wellness", "--only-lagging", "-o", "json"]
    assert run(*words).json == []
    more(run, "well", 1)
    assert [row["lag"] for row in run(*words).json] == [1]


def test_reset_changes_nothing_without_execute(run: Run) -> None:
    read_all(run, "reset", "r")
    words = ["groups", "reset-offsets", "r", "--topic", "reset", "--to-earliest"]
    shown = run(*words, "-o", "json")
    assert (shown.exit_code, "nothing was changed" in shown.stderr) == (0, True)
    (row,) = shown.json
    assert (row["current_offset"], row["new_offset"], row["change"]) == (5, 0, -5)
    assert run(*words, "--execute", "--dry-run").exit_code == 0
    assert offset_of(run, "r") == 5
    assert run(*words, "--execute").exit_code == 0
    assert offset_of(run, "r") == 0


def test_every_scenario_of_a_reset(run: Run, tmp_path: Path) -> None:
    run("topics", "create", "scenes", "-p", "1")
    for number in range(5):
        more(run, "scenes", 2, str(1000 + 1000 * number))
    more(run, "scenes", 1, "-30m")

    def after(*words: str) -> int | None:
        done = run("groups", "reset-offsets", "s", "--topic", "scenes", *words, "--yes")
        assert done.exit_code == 0, done.stderr
        return offset_of(run, "s")

    assert after("--to-offset", "4") == 4
    assert after("--shift-by", "-3") == 1
    assert after("--shift-by", "-30") == 0
    assert after("--to-offset", "999") == 11
    assert after("--to-datetime", "1970-01-01T00:00:03.000") == 4
    assert after("--by-duration", "PT1H") == 10
    assert after("--by-duration", "1m") == 11
    assert after("--to-latest") == 11
    assert after("--to-earliest") == 0
    assert after("--to-current") == 0
    exported = run("groups", "reset-offsets", "s", "--all-topics", "--to-latest", "--export")
    assert exported.output == "scenes,0,11\n"
    file = tmp_path / "offsets.csv"
    file.write_text("scenes,0,3\n")
    assert after("--from-file", str(file)) == 3
    run("groups", "reset-offsets", "other", "--topic", "scenes", "--to-offset", "7", "--execute")
    assert after("--to-group", "other") == 7


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--to-earliest", "--to-latest", "--topic", "t"], 2),
        (["--topic", "t"], 2),
        (["--to-earliest"], 2),
        (["--to-earliest", "--topic", "t:x"], 2),
        (["--to-datetime", "soon", "--topic", "t"], 2),
        (["--to-earliest", "--topic", "not-there"], 1),
        (["--shift-by", "1", "--topic", "not-there:0"], 1),
        (["--from-file", "/not/there"], 1),
        (["--to-group", "nobody", "--topic", "not-there:0"], 1),
    ],
)
def test_invalid_reset_is_refused(run: Run, words: list[str], status: int) -> None:
    assert run("groups", "reset-offsets", "nonsense", *words).exit_code == status


def test_group_with_members_is_neither_reset_nor_deleted(
    run: Run, group_broker: RunningBroker
) -> None:
    read_all(run, "busy", "busy-g")
    with member(group_broker, "busy", "busy-g"):
        words = ["groups", "reset-offsets", "busy-g", "--topic", "busy", "--to-earliest"]
        refused = run(*words, "--execute", "--format", "kafka")
        assert refused.exit_code == 1
        assert "is inactive, but the current state is Stable." in refused.output
        assert "NON_EMPTY_GROUP" in run("groups", "delete", "busy-g", "--yes").stderr
        offsets = run("groups", "delete-offsets", "busy-g", "--topic", "busy", "--yes")
        assert "GROUP_SUBSCRIBED_TO_TOPIC" in offsets.stderr


def test_members_are_removed_by_id_instance_or_all(run: Run, group_broker: RunningBroker) -> None:
    read_all(run, "removed", "rm")
    static = Consumer(
        {
            "bootstrap.servers": group_broker.bootstrap_servers,
            "group.id": "rm",
            "group.instance.id": "gone",
        }
    )
    joined = threading.Event()
    static.subscribe(["removed"], on_assign=lambda *_: joined.set())
    while not joined.is_set():
        static.poll(0.1)
    static.close()  # a static member stays in the group
    words = ["groups", "remove-members", "rm"]
    assert "no member other" in run(*words, "--instance", "other", "--yes").stderr
    (row,) = run(*words, "--all", "--dry-run", "-o", "json").json
    assert row["group_instance_id"] == "gone"
    refused = run(*words, "--all")
    assert (refused.exit_code, "without a terminal" in refused.stderr) == (1, True)
    (done,) = run(*words, "--instance", "gone", "--yes", "-o", "json").json
    assert done == {"member": "gone", "status": "removed"}
    assert run("groups", "describe", "rm", "--members", "-o", "json").json == []
    assert run(*words).exit_code == 2
    assert run("groups", "remove-members", "nobody", "--all").exit_code == 1


def test_delete_offsets_forgets_the_topic(run: Run) -> None:
    read_all(run, "forgotten", "forget")
    words = ["groups", "delete-offsets", "forget", "--topic", "forgotten"]
    assert run(*words).exit_code == 1  # nobody to ask
    (planned,) = run(*words, "--dry-run", "-o", "json").json
    assert planned == {"topic": "forgotten", "partition": 0, "current_offset": 5}
    assert run(*words, "--yes").output.splitlines()[1:] == ["forgotten-0   deleted"]
    assert run("groups", "delete-offsets", "nobody", "-t", "forgotten", "--yes").exit_code == 1
    assert run("groups", "delete-offsets", "forget").exit_code == 2


def test_delete_requires_confirmation_and_reports_each_result(run: Run) -> None:
    read_all(run, "deleted", "del-a")
    assert run("groups", "delete", "del-a").exit_code == 1
    (planned,) = run("groups", "delete", "del-a", "--dry-run", "-o", "json").json
    assert (planned["group"], planned["state"]) == ("del-a", "Empty")
    both = run("groups", "delete", "del-a", "del-none", "--yes", "-o", "json")
    assert both.exit_code == 1
    assert [row["status"] for row in both.json] == ["deleted", "failed"]
    kafka = run("groups", "delete", "del-a", "--yes", "--format", "kafka")
    assert "GroupIdNotFoundException" in kafka.output
    assert kafka.exit_code == 1


def test_watch_shows_the_trend_from_the_second_update(run: Run) -> None:
    read_all(run, "watched", "watch")
    more(run, "watched", 2)
    result = run("groups", "watch", "watch", "-n", "2", "-i", "0.1", "-w", "0.1", "-o", "jsonl")
    first, second = map(json.loads, result.output.splitlines())
    assert (first["trend"], first["consumed_per_s"]) == ("-", None)
    assert (second["trend"], second["consumed_per_s"], second["lag"]) == ("stalled", 0.0, 2)
    assert second["verdict"] == "unread"


def test_group_of_a_topic_that_was_deleted_is_still_shown(run: Run) -> None:
    read_all(run, "vanished", "orphan")
    read_all(run, "stays", "orphan")
    assert run("topics", "delete", "vanished", "--yes").exit_code == 0
    rows = run("groups", "describe", "orphan", "-o", "json").json
    assert "stays" in [row["topic"] for row in rows]
