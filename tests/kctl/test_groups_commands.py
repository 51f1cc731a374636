"""`kctl groups` on our broker."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    result = run("groups", "describe", "unknown")
    assert (result.exit_code, "'unknown'" in result.stderr) == (1, True)
    kafka = run("groups", "describe", "unknown", "--format", "kafka")
    assert kafka.output == "\nError: Consumer group 'unknown' does not exist.\n"
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
        (["--to-group", "unknown", "--topic", "not-there:0"], 1),
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
    assert run("groups", "remove-members", "unknown", "--all").exit_code == 1


def test_delete_offsets_forgets_the_topic(run: Run) -> None:
    read_all(run, "forgotten", "forget")
    words = ["groups", "delete-offsets", "forget", "--topic", "forgotten"]
    assert run(*words).exit_code == 1  # no terminal to confirm on
    (planned,) = run(*words, "--dry-run", "-o", "json").json
    assert planned == {"topic": "forgotten", "partition": 0, "current_offset": 5}
    assert run(*words, "--yes").output.splitlines()[1:] == ["forgotten-0   deleted"]
    assert run("groups", "delete-offsets", "unknown", "-t", "forgotten", "--yes").exit_code == 1
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


def test_list_shows_lag_on_request(run: Run) -> None:
    read_all(run, "list-lag", "list-lag-g")
    more(run, "list-lag", 3, "-1h")
    rows = run("groups", "list", "--lag", "-o", "json").json
    (row,) = [row for row in rows if row["group"] == "list-lag-g"]
    assert (row["total_lag"], row["max_lag"], row["verdicts"]) == (3, 3, ["unread"])
    assert row["max_time_lag"].startswith("1h")
    assert "TOTAL-LAG" not in run("groups", "list").output


def test_unknown_state_is_refused(run: Run) -> None:
    result = run("groups", "list", "--state", "Foo")
    assert (result.exit_code, "no such group state: 'Foo'" in result.stderr) == (2, True)
    assert run("groups", "list", "--state", "stable,EMPTY").exit_code == 0


def test_describe_sums_up_by_topic(run: Run) -> None:
    for topic, unread in (("sum-a", 2), ("sum-b", 3)):
        read_all(run, topic, "sums")
        more(run, topic, unread, "-1h")
    rows = run("groups", "describe", "sums", "--by-topic", "-o", "json").json
    assert [(row["topic"], row["partitions"], row["total_lag"]) for row in rows] == [
        ("sum-a", 1, 2),
        ("sum-b", 1, 3),
    ]
    assert run("groups", "describe", "sums", "--by-topic", "--totals").exit_code == 2


def test_totals_of_watch_are_filtered_and_sorted(run: Run) -> None:
    for group, unread in (("t-a", 0), ("t-b", 1), ("t-c", 4)):
        read_all(run, f"{group}-topic", group)
        if unread:
            more(run, f"{group}-topic", unread, "-1h")
    words = ("groups", "watch", "t-a", "t-b", "t-c", "-n", "1", "--totals", "-o", "json")
    assert [row["group"] for row in run(*words).json] == ["t-a", "t-b", "t-c"]
    assert [row["group"] for row in run(*words, "--sort", "lag").json] == ["t-c", "t-b", "t-a"]
    assert [row["group"] for row in run(*words, "--only-lagging").json] == ["t-b", "t-c"]
    assert [row["group"] for row in run(*words, "--topic", "t-b-topic").json] == ["t-b"]


def test_watch_filters_sorts_and_fails_on_a_condition(run: Run) -> None:
    for topic, unread in (("w-a", 1), ("w-b", 4), ("w-c", 0)):
        read_all(run, topic, "watched")
        if unread:
            more(run, topic, unread, "-1h")
    words = ("groups", "watch", "watched", "-n", "1", "-o", "json")
    assert [row["topic"] for row in run(*words).json] == ["w-a", "w-b", "w-c"]
    assert [row["topic"] for row in run(*words, "--sort", "lag").json] == ["w-b", "w-a", "w-c"]
    assert [row["topic"] for row in run(*words, "--only-lagging").json] == ["w-a", "w-b"]
    assert [row["topic"] for row in run(*words, "--topic", "w-c").json] == ["w-c"]
    assert [row["total_lag"] for row in run(*words, "--totals").json] == [5]
    assert [row["total_lag"] for row in run(*words, "--totals", "--topic", "w-b").json] == [4]
    for condition, status in (
        *(("lag>3", 3), ("lag>4", 0), ("time-lag>30m", 3), ("time-lag>2h", 0)),
        *(("verdict=unread", 3), ("verdict=stalled", 0), ("verdict=nonsense", 2)),
    ):
        result = run(*words, "--fail-if", condition)
        assert result.exit_code == status, (condition, result.stderr)


def test_stalled_member_can_be_paged_on(run: Run, group_broker: RunningBroker) -> None:
    read_all(run, "paged", "paged-g")
    with member(group_broker, "paged", "paged-g", enable_auto_commit=False):
        more(run, "paged", 3)
        words = ("groups", "watch", "paged-g", "-n", "4", "-i", "0.2", "-w", "0.5")
        result = run(*words, "--fail-if", "verdict=stalled")
        totals = run(*words, "--totals", "-o", "jsonl")
    assert result.exit_code == 3, result.output
    assert "paged-g: verdict=stalled" in result.stderr
    assert json.loads(totals.output.splitlines()[-1])["verdicts"] == ["stalled"]


def test_rows_that_do_not_fit_the_terminal_are_counted(
    run: Run, group_broker: RunningBroker
) -> None:
    run("topics", "create", "tall", "-p", "30")
    words = ("groups", "reset-offsets", "tall-g", "--topic", "tall", "--to-earliest", "--execute")
    assert run(*words).exit_code == 0
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 140, 0, 0))
    command = [sys.executable, "-m", "kctl", "groups", "watch", "tall-g", "-n", "1"]
    environment = {k: v for k, v in os.environ.items() if k not in ("LINES", "COLUMNS")}
    process = subprocess.Popen(
        [*command, "-b", group_broker.bootstrap_servers],
        stdout=theirs,
        stderr=theirs,
        env=environment | {"TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    with suppress(OSError):
        while data := os.read(ours, 4096):
            seen += data
    assert process.wait(30) == 0
    lines = seen.decode().splitlines()
    assert len(lines) < 12
    assert f"{30 - (len(lines) - 2)} more" in lines[-1]


def test_group_is_copied_with_all_its_topics(run: Run) -> None:
    read_all(run, "copy-a", "copied")
    read_all(run, "copy-b", "copied", 3)
    for words in ((), ("--all-topics",)):
        group = f"copy-{len(words)}"
        reset = ("groups", "reset-offsets", group, "--to-group", "copied", *words, "--execute")
        assert run(*reset).exit_code == 0
        rows = run("groups", "describe", group, "-o", "json").json
        offsets = [(row["topic"], row["current_offset"]) for row in rows]
        assert offsets == [("copy-a", 5), ("copy-b", 3)]


def test_offsets_of_a_group_with_members_can_be_saved(
    run: Run, group_broker: RunningBroker, tmp_path: Path
) -> None:
    read_all(run, "saved", "saved-g")
    words = ("groups", "reset-offsets", "saved-g", "--all-topics", "--to-current")
    with member(group_broker, "saved", "saved-g"):
        result = run(*words, "--export")
        assert result.exit_code == 0, result.stderr
        refused = run(*words, "--export", "--execute")
        assert refused.exit_code == 1
    (tmp_path / "offsets.csv").write_text(result.output)
    restored = ("--from-file", str(tmp_path / "offsets.csv"), "--execute")
    run("groups", "reset-offsets", "saved-g", "--all-topics", "--to-earliest", "--execute")
    assert run("groups", "reset-offsets", "saved-g", *restored).exit_code == 0
    assert offset_of(run, "saved-g") == 5


def test_partition_that_does_not_exist_is_named(run: Run) -> None:
    read_all(run, "narrow", "narrow-g")
    words = ("groups", "reset-offsets", "narrow-g", "--to-earliest", "--topic", "narrow:99")
    result = run(*words)
    assert (result.exit_code, "narrow has no partition 99" in result.stderr) == (1, True)


def test_groups_that_do_not_exist_are_not_deleted_in_a_dry_run(run: Run) -> None:
    read_all(run, "near", "near-group")
    for words in (("delete", "near-grup", "--dry-run"), ("watch", "near-grup", "-n", "1")):
        result = run("groups", *words)
        assert (result.exit_code, "no such group: 'near-grup'" in result.stderr) == (1, True)
        assert "did you mean near-group" in result.stderr


def test_deletion_of_offsets_tells_partitions_without_any(run: Run) -> None:
    read_all(run, "twice", "twice-g")
    words = ("groups", "delete-offsets", "twice-g", "--topic", "twice", "--yes", "-o", "json")
    more(run, "twice", 1)
    run("consume", "twice", "--group", "twice-g", "--exit")
    assert [row["status"] for row in run(*words).json] == ["deleted"]
    other = ("groups", "reset-offsets", "twice-g", "--topic", "near", "--to-earliest", "--execute")
    run("topics", "create", "near", "--if-not-exists")
    run(*other)
    assert [row["status"] for row in run(*words).json] == ["no offset"]


def test_group_with_members_says_how_to_delete_it(run: Run, group_broker: RunningBroker) -> None:
    read_all(run, "manned", "manned-g")
    with member(group_broker, "manned", "manned-g"):
        assert "stop its consumers" in run("groups", "delete", "manned-g", "--yes").stderr
        words = ("groups", "delete-offsets", "manned-g", "--topic", "manned", "--yes")
        assert "stop its consumers" in run(*words).stderr
