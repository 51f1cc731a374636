"""Kafka's JSON files, and texts that equal those of its tools."""

import json

import pytest

from broker.errors import ErrorCode
from broker.model import TopicPartition
from kctl.cli.arguments.plan_files import (
    parse_elections,
    parse_reassignment,
    parse_topics,
    reassignment_json,
)
from kctl.cli.errors import CliError
from kctl.model.elections import ElectionType
from kctl.model.log_dirs import LogDir, Replica
from kctl.model.outcomes import Outcome
from kctl.model.reassignments import Reassignment
from kctl.plans.reassignment.log_dirs import log_dir_moves
from kctl.plans.reassignment.states import states_of
from kctl.views.kafka_text.elections import election_lines, failure_message
from kctl.views.kafka_text.reassign import (
    NO_MOVES_ACTIVE,
    cancelled_line,
    clearing_lines,
    error_line,
    failed_lines,
    generation_lines,
    list_lines,
    log_dir_lines,
    rollback_lines,
    started_line,
    throttle_lines,
    verification_lines,
)
from tests.support.golden_tools import golden_tool

T0, T1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def entry(**fields: object) -> str:
    base: dict[str, object] = {"topic": "t", "partition": 0, "replicas": [1, 2]}
    return json.dumps({"version": 1, "partitions": [base | fields]})


def test_generation_equals_kafka_reassign_partitions() -> None:
    golden = golden_tool("30-").lines
    current = parse_reassignment(golden[1], "current").replicas
    proposed = parse_reassignment(golden[4], "proposed").replicas
    assert generation_lines(current, proposed) == golden


def test_execution_equals_kafka_reassign_partitions() -> None:
    golden = golden_tool("31-").lines
    current = parse_reassignment(golden[2], "current").replicas
    lines = [*rollback_lines(current), *throttle_lines(10_000_000, None), started_line(current)]
    assert lines == golden


def test_empty_list_and_completed_plan_equal_kafka_reassign_partitions() -> None:
    assert list_lines({}) == golden_tool("32-").lines
    wanted = {T0: (1, 2), T1: (2, 3)}
    states = states_of(wanted, {}, wanted)
    lines = [*verification_lines(states, []), *clearing_lines([3, 1, 2], ["orders", "orders"])]
    assert lines == golden_tool("33-").lines


def test_refused_plan_and_idle_cancel_equal_kafka_reassign_partitions() -> None:
    assert error_line("Unknown broker id 9") == golden_tool("34-").lines[0]
    clearing = clearing_lines([1, 2, 3], ["orders"])
    lines = [cancelled_line([]), NO_MOVES_ACTIVE + clearing[0], clearing[1]]
    assert lines == golden_tool("35-").lines


@pytest.mark.parametrize(
    ("golden", "code", "message"),
    [
        ("36-", ErrorCode.NONE, ""),
        ("37-", ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed"),
        ("38-", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."),
    ],
)
def test_elections_output_equals_kafka_leader_election(
    golden: str, code: ErrorCode, message: str
) -> None:
    expected = golden_tool(golden).lines
    name = {"36-": T1, "37-": T0, "38-": TopicPartition("nope", 0)}[golden]
    lines = election_lines(ElectionType.PREFERRED, [(name, Outcome(str(name), code, message))])
    assert list(lines) == expected[:1]
    if golden == "38-":
        assert failure_message(1) == expected[1]


def test_reassignments_in_progress_are_listed_with_added_and_removed_replicas() -> None:
    moving = {
        T1: Reassignment(T1, (1, 2, 3), (3,), (1,)),
        T0: Reassignment(T0, (1, 2), (2,), ()),
    }
    assert list_lines(moving) == [
        "Current partition reassignments:",
        "orders-0: replicas: 1,2. adding: 2.",
        "orders-1: replicas: 1,2,3. adding: 3. removing: 1.",
    ]
    assert moving[T1].target == (2, 3)


def test_incomplete_plan_shows_the_current_replicas() -> None:
    moving = {T0: Reassignment(T0, (1, 2), (2,), ())}
    gone = TopicPartition("gone", 0)
    states = states_of({T0: (2,), T1: (3, 1), gone: (1,)}, moving, {T1: (1, 3)})
    assert [state.status for state in states] == [
        "no such partition",
        "in progress",
        "other replicas",
    ]
    assert list(verification_lines(states, []))[1:] == [
        "There is no active reassignment of partition gone-0, but replica set is  rather than 1.",
        "Reassignment of partition orders-0 is still in progress.",
        "There is no active reassignment of partition orders-1, but replica set is 1,3 rather"
        " than 3,1.",
        "",
    ]


def log_dir(path: str, *, future: bool) -> LogDir:
    return LogDir(1, path, ErrorCode.NONE, None, None, (Replica(T0, 5, 0, future),))


@pytest.mark.parametrize(
    ("dirs", "words"),
    [
        (
            [log_dir("/b", future=False)],
            "Reassignment of replica orders-0-1 completed successfully.",
        ),
        (
            [log_dir("/a", future=False), log_dir("/b", future=True)],
            "Reassignment of replica orders-0-1 is still in progress.",
        ),
        (
            [log_dir("/a", future=False), log_dir("/c", future=True)],
            "Partition orders-0 on broker 1 is being moved to log dir /c instead of /b.",
        ),
        (
            [log_dir("/a", future=False)],
            "Partition orders-0 on broker 1 is not being moved from log dir /a to /b.",
        ),
        (
            [],
            "Partition orders-0 is not found in any live log dir on broker 1. There is likely an"
            " offline log directory on the broker.",
        ),
    ],
)
def test_moves_between_directories_are_distinguished(dirs: list[LogDir], words: str) -> None:
    moves = log_dir_moves({(T0, 1): "/b"}, dirs)
    assert list(verification_lines([], moves))[1:] == [words]


def test_directories_of_a_plan_are_read_for_the_replicas_that_name_one() -> None:
    found = parse_reassignment(entry(log_dirs=["any", "/data"]), "plan")
    assert found.log_dirs == {(TopicPartition("t", 0), 2): "/data"}
    assert log_dir_lines({(T0, 2): "/data"}) == [
        "Successfully started moving log directory to /data for replica orders-0 with broker 2 "
    ]


def test_failures_are_listed_below_a_title() -> None:
    refused = Outcome("t-0", ErrorCode.INVALID_REPLICA_ASSIGNMENT, "not alive")
    assert failed_lines([refused, Outcome("t-1")]) == [
        "Error reassigning partition(s):",
        "t-0: not alive",
    ]
    assert failed_lines([refused], cancelling=True)[0] == (
        "Error cancelling partition reassignment for:"
    )


def test_written_plan_is_read_back_as_it_was() -> None:
    assignment = {T1: (2, 1), T0: (1,)}
    text = reassignment_json(assignment)
    assert parse_reassignment(text, "plan").replicas == assignment
    assert text.index('"partition":0') < text.index('"partition":1')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "not one of Kafka's JSON files"),
        ("[]", "not one of Kafka's JSON files"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"partitions": 5}', "is not a list"),
        ('{"partitions": []}', "cannot be empty"),
        ('{"partitions": [{"topic": "t"}]}', "invalid entry in the file"),
        (entry(replicas=[]), "Partition replica list cannot be empty"),
        (entry(replicas=[1, 1]), "t-0 contains multiple entries for 1"),
        (entry(log_dirs=["any"]), r"Size of replicas list \[1, 2\] is different"),
        (
            '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]},'
            ' {"topic": "t", "partition": 0, "replicas": [2]}]}',
            "duplicate topic partitions: t-0",
        ),
    ],
)
def test_invalid_plan_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(CliError, match=words) as refused:
        parse_reassignment(text, "plan.json")
    assert refused.value.hint


def test_files_of_topics_and_elections_must_not_have_duplicates() -> None:
    assert parse_topics('{"topics": [{"topic": "a"}, {"topic": "b"}]}', "f") == ["a", "b"]
    assert parse_elections('{"partitions": [{"topic": "a", "partition": 1}]}', "f") == [("a", 1)]
    with pytest.raises(CliError, match="duplicate entries"):
        parse_topics('{"topics": [{"topic": "a"}, {"topic": "a"}]}', "f")
    with pytest.raises(CliError, match="duplicate partitions"):
        parse_elections(
            '{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 1}]}', "f"
        )
    with pytest.raises(CliError, match="lacks 'partition'"):
        parse_elections('{"partitions": [{"topic": "a"}]}', "f")
