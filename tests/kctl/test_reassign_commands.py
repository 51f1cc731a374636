"""`kctl reassign`, `throttle`, `elect-leaders` and `replicas` on a single broker of ours."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.net.client import Client
from kctl.admin.throttles import alter_each
from kctl.model.outcomes import Outcome
from kctl.operations.reassignment import throttling
from kctl.operations.reassignment.rollback import rollback_home
from kctl.plans.throttles import ConfigChanges
from tests.support.broker import RunningBroker, running_broker
from tests.support.cluster import wait_until
from tests.support.kctl import Kctl, KctlResult

Run = Callable[..., KctlResult]


@pytest.fixture(scope="module")
def lone_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """Broker 1, as plans have it."""
    with running_broker(tmp_path_factory.mktemp("broker"), broker_id=1) as running:
        yield running


@pytest.fixture
def run(
    kctl: Kctl, lone_broker: RunningBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """kctl with the module's broker as its cluster, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    env = {"KCTL_BOOTSTRAP_SERVERS": lone_broker.bootstrap_servers}
    return lambda *args, **more: kctl(*args, env={**env, **more})


@pytest.fixture
def topic(run: Run, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of two partitions, named after the test; no throttle stays behind."""
    name = request.node.name.removeprefix("test_")[:40]
    assert run("topics", "create", name, "-p", "2").exit_code == 0
    yield name
    run("throttle", "clear", "--yes")


def write_plan(path: Path, topic: str, replicas: list[int], partitions: int = 2) -> str:
    entries = [
        {"topic": topic, "partition": index, "replicas": replicas} for index in range(partitions)
    ]
    path.write_text(json.dumps({"version": 1, "partitions": entries}))
    return str(path)


def test_plan_for_a_cluster_that_meets_the_goals_is_empty(run: Run, topic: str) -> None:
    result = run("reassign", "plan", "--drain", "3", "--balance", "count", "-o", "json")
    assert (result.exit_code, result.json) == (0, [])
    assert "nothing to reassign" in result.stderr
    assert "--drain 3: not running, and without replicas" in result.stderr
    total = run("reassign", "plan", topic, "--balance", "leaders", "--by", "total", "-o", "json")
    assert (total.json["partitions"], total.json["replica_skew_then"]) == (0, 1.0)
    brokers = run("reassign", "plan", topic, "--balance", "leaders", "--by", "broker", "-o", "json")
    (row,) = brokers.json
    assert (row["broker"], row["replicas_now"], row["leaders_then"]) == (1, 2, 2)
    assert run("reassign", "run", "--drain", "3", "--yes").exit_code == 0


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["plan"], 2, "no goal specified"),
        (["plan", "--replication-factor", "1"], 2, "requires topics"),
        (["plan", "nope", "--balance", "count"], 1, "nope"),
        (["plan", "--drain", "x"], 2, "not a broker id"),
        (["plan", "--drain", "1"], 1, "no usable broker"),
        (["plan", "--add-brokers", "7"], 1, "no such broker: 7"),
        (["plan", "--rack-aware"], 1, "has no rack"),
        (["plan", "--format", "kafka"], 2, "requires topics and --broker-list"),
        (["execute"], 2, "no plan file specified"),
        (["execute", "missing.json"], 1, "cannot read missing.json"),
        (["cancel"], 2, "no reassignment specified"),
        (
            ["run", "--file", "plan.json", "--drain", "2"],
            2,
            "cannot be combined with topics or goals",
        ),
        (["run", "--drain", "2", "--throttle", "9"], 2, "too slow"),
    ],
)
def test_impossible_requests_are_refused_with_a_hint(
    run: Run, words: list[str], status: int, message: str
) -> None:
    result = run("reassign", *words)
    assert result.exit_code == status
    assert message in result.stderr
    assert "hint:" in result.stderr


def test_plan_file_is_accepted_by_the_other_verbs(run: Run, topic: str, tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.json", topic, [1])
    assert run("reassign", "verify", plan).exit_code == 0
    assert run("reassign", "verify", plan, "-o", "json").json[1]["status"] == "completed"
    other = write_plan(tmp_path / "other.json", topic, [1, 2])
    verified = run("reassign", "verify", other, "-o", "json")
    assert verified.exit_code == 3
    assert {row["status"] for row in verified.json} == {"other replicas"}
    refused = run("reassign", "execute", other, "--yes")
    assert (refused.exit_code, "Unknown broker id 2" in refused.stderr) == (1, True)
    unknown = write_plan(tmp_path / "more.json", topic, [1], partitions=3)
    assert f"{topic}-2" in run("reassign", "execute", unknown, "--yes").stderr
    assert run("reassign", "list", "-o", "json").json == []
    assert "no such reassignment" in run("reassign", "cancel", "--file", plan, "--yes").stderr


def test_execute_writes_the_rollback_first(run: Run, topic: str, tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.json", topic, [1])
    dry = run("reassign", "execute", plan, "--rollback", "back.json", "--dry-run")
    assert dry.exit_code == 0
    assert not Path("back.json").exists()
    unwritable = run("reassign", "execute", plan, "--rollback", "no/such/dir.json", "--yes")
    assert (unwritable.exit_code, "nothing was changed" in unwritable.stderr) == (1, True)
    result = run("reassign", "execute", plan, "--rollback", "back.json", "--yes", "-o", "json")
    assert [row["status"] for row in result.json] == ["started", "started"]
    assert json.loads(Path("back.json").read_text())["partitions"][1]["replicas"] == [1]
    again = run("reassign", "execute", plan, "--rollback", "back.json", "--yes")
    assert (again.exit_code, "back.json already exists" in again.stderr) == (1, True)
    before = len(list(rollback_home().glob("*.json")))
    for _ in range(3):
        result = run("reassign", "execute", plan, "--yes")
        assert (result.exit_code, str(rollback_home()) in result.stderr) == (0, True)
    assert len(list(rollback_home().glob("*.json"))) == before + 3
    assert list(Path().glob("*rollback*")) == []


def test_home_of_rollbacks_that_cannot_be_written_changes_nothing(
    run: Run, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/proc")
    plan = write_plan(tmp_path / "plan.json", topic, [1])
    result = run("reassign", "execute", plan, "--yes")
    assert (result.exit_code, "nothing was changed" in result.stderr) == (1, True)
    assert "--rollback FILE" in result.stderr


def test_rollback_of_a_move_between_directories_moves_back(kctl: Kctl, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with running_broker(tmp_path, log_dirs=f"{first},{second}", broker_id=1) as broker:
        servers = ("-b", broker.bootstrap_servers)
        assert kctl("topics", "create", "jbod", "-p", "1", *servers).exit_code == 0
        wait_until(lambda: list(tmp_path.glob("*/jbod-0")), "the replica exists")
        source = next(tmp_path.glob("*/jbod-0")).parent
        target = second if source == first else first
        plan = tmp_path / "plan.json"
        entry = {"topic": "jbod", "partition": 0, "replicas": [1], "log_dirs": [str(target)]}
        plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        started = kctl("reassign", "execute", str(plan), "--yes", *servers)
        assert started.exit_code == 0, started.stderr
        wait_until(lambda: (target / "jbod-0").exists(), "it is moved")
        command = started.stderr.partition("rollback: kctl ")[2].splitlines()[0].split()
        assert command[:2] == ["reassign", "execute"]
        back = json.loads(Path(command[2]).read_text())["partitions"][0]
        assert back["log_dirs"] == [str(source)]
        wait_until(
            lambda: kctl("reassign", "verify", str(plan), *servers).exit_code == 0, "complete"
        )
        undone = kctl(*command, "--yes", *servers)
        assert undone.exit_code == 0, undone.stderr
        wait_until(lambda: (source / "jbod-0").exists(), "it is moved back")


def test_throttle_that_is_interrupted_while_it_is_set_is_taken_back(
    run: Run, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = write_plan(tmp_path / "plan.json", topic, [1])

    async def interrupted(client: Client, changes: ConfigChanges) -> list[Outcome]:
        await alter_each(client, changes)
        raise KeyboardInterrupt

    monkeypatch.setattr(throttling, "alter_each", interrupted)
    result = run("reassign", "execute", plan, "--throttle", "5MB", "--yes")
    assert result.exit_code != 0
    assert run("throttle", "list", "-o", "json").json == []


def test_without_a_terminal_nothing_happens(run: Run, topic: str, tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.json", topic, [1])
    result = run("reassign", "execute", plan)
    assert (result.exit_code, "nothing was changed" in result.stderr) == (1, True)
    assert "rollback:" not in result.stderr


def test_read_only_context_refuses_reassignments_and_throttle_changes(
    run: Run, lone_broker: RunningBroker, topic: str, tmp_path: Path
) -> None:
    env = {"KCTL_CONFIG": str(tmp_path / "contexts.yaml"), "KCTL_BOOTSTRAP_SERVERS": ""}
    servers = lone_broker.bootstrap_servers
    assert run("context", "set", "prod", "-b", servers, "--read-only", **env).exit_code == 0
    plan = write_plan(tmp_path / "plan.json", topic, [1])
    for words in (
        ["reassign", "execute", plan, "--yes"],
        ["reassign", "verify", plan, "--clear-throttles"],
        ["reassign", "verify", plan, "--format", "kafka"],
        ["throttle", "set", "5MB", "--brokers", "1", "--yes"],
        ["elect-leaders", "--all", "--format", "kafka", "--yes"],
    ):
        result = run("--context", "prod", *words, **env)
        assert (result.exit_code, "read-only" in result.stderr) == (1, True), words
    assert run("--context", "prod", "reassign", "verify", plan, **env).exit_code == 0


def test_text_without_transactions_equals_kafkas_tool(run: Run, topic: str, tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.json", topic, [1])
    listed = run("reassign", "list", "--format", "kafka")
    assert listed.output == "No partition reassignments found.\n"
    cancelled = run("reassign", "cancel", "--file", plan, "--format", "kafka", "--yes")
    assert cancelled.output == (
        "None of the specified partition reassignments are active.\n"
        "None of the specified partition moves are active."
        "Clearing broker-level throttles on broker 1\n"
        f"Clearing topic-level throttles on topic {topic}\n"
    )
    dealt = run("reassign", "plan", topic, "--broker-list", "1", "--format", "kafka")
    current, proposed = dealt.output.splitlines()[1::3]
    assert current == proposed
    missing = run("reassign", "plan", "nope", "--broker-list", "1", "--format", "kafka")
    assert (missing.exit_code, missing.output) == (
        1,
        "Error: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic nope not"
        " found.\n",
    )


def test_throttles_are_set_listed_as_leaked_and_cleared(run: Run, topic: str) -> None:
    assert run("throttle", "set", "5MB").exit_code == 1  # nothing moves that it could be for
    dry = run("throttle", "set", "5MB", topic, "--brokers", "1", "--dry-run", "-o", "json")
    assert [row["then"] for row in dry.json] == ["*", "*", "5000000", "5000000"]
    assert run("throttle", "list", "-o", "json").json == []
    assert run("throttle", "set", "5MB", topic, "--brokers", "1", "--yes").exit_code == 0
    for option in ("--log-dirs", "--log-dirs-throttle"):
        assert run("throttle", "set", option, "7MB", "--brokers", "1", "--yes").exit_code == 0
    listed = run("throttle", "list", "-o", "json")
    assert listed.exit_code == 0
    assert sorted(row["value"] for row in listed.json) == [
        "*",
        "*",
        "5000000",
        "5000000",
        "7000000",
    ]
    assert run("throttle", "list", "--leaked").exit_code == 3
    assert run("throttle", "clear", topic, "--yes").exit_code == 0
    left = run("throttle", "list", "-o", "json").json
    assert {row["entity"] for row in left} == {"broker 1"}
    assert run("throttle", "clear", "--leaked", "--yes").exit_code == 0
    assert "no such throttle" in run("throttle", "clear", "--yes").stderr
    assert run("throttle", "set", "5MB", "--brokers", "9", "--yes").exit_code == 1
    assert run("throttle", "set").exit_code == 2


def test_preferred_leader_needs_no_election(run: Run, topic: str, tmp_path: Path) -> None:
    for words in ([topic], [f"{topic}:0,1"], ["--all"], ["--broker", "1"], [".*", "--regex"]):
        result = run("elect-leaders", *words, "--yes")
        assert (result.exit_code, "no election is needed" in result.stderr) == (0, True)
    file = tmp_path / "elections.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 1}]}))
    assert run("elect-leaders", "--file", str(file), "--dry-run").exit_code == 0
    kafka = run("elect-leaders", "--path-to-json-file", str(file), "--format", "kafka", "--yes")
    assert kafka.output == f"Valid replica already elected for partitions {topic}-1\n"
    assert run("elect-leaders", "nope", "--yes").exit_code == 1
    assert run("elect-leaders", "--yes").exit_code == 2


def test_text_of_an_election_of_a_missing_partition_equals_kafkas_tool(run: Run) -> None:
    words = ["--topic", "nope", "--partition", "0", "--election-type", "preferred"]
    result = run("elect-leaders", *words, "--format", "kafka", "--yes")
    assert result.exit_code == 1
    assert result.output.startswith("Error completing leader election (PREFERRED) for partition")
    assert "1 replica(s) could not be elected" in result.stderr


def test_lone_replica_is_compared_up_to_its_high_watermark(
    run: Run, lone_broker: RunningBroker, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": lone_broker.bootstrap_servers})
    for number in range(30):
        producer.produce(topic, b"value %d" % number, partition=number % 2)
    assert producer.flush(10) == 0
    result = run("replicas", "verify", topic, "-o", "json")
    assert result.exit_code == 0
    assert [(row["verified_offset"], row["status"]) for row in result.json] == [(15, "same")] * 2
    kafka = run("replicas", "verify", "--topics-include", topic, "--format", "kafka").output
    assert "verification process is started" in kafka
    assert f"max lag is 0 for partition {topic}-0 at offset 15 among 2 partitions" in kafka
    assert run("replicas", "verify", "nope").exit_code == 1
    assert run("replicas", "verify", topic, "--time", "latest").exit_code == 0


def test_replication_factor_beyond_the_brokers_is_refused(run: Run, topic: str) -> None:
    result = run("topics", "alter", topic, "--replication-factor", "2", "--yes")
    assert (result.exit_code, "2 replicas" in result.stderr) == (1, True)
    assert run("topics", "alter", topic, "--replication-factor", "1", "--yes").exit_code == 0
    both = run("topics", "alter", topic, "--replication-factor", "1", "-p", "5", "--yes")
    assert both.exit_code == 2


def test_directories_are_balanced_and_drained_by_plans(kctl: Kctl, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    plan = str(tmp_path / "plan.json")
    with running_broker(tmp_path, log_dirs=f"{first},{second}", broker_id=1) as broker:

        def run(*args: str) -> KctlResult:
            return kctl(*args, "-b", broker.bootstrap_servers)

        def apply(*goal: str) -> None:
            made = run("reassign", "plan", *goal, "--out", plan)
            assert made.exit_code == 0, made.stderr
            assert "kctl reassign execute" in made.stderr
            done = run("reassign", "execute", plan, "--yes")
            assert done.exit_code == 0, done.stderr
            wait_until(lambda: run("reassign", "verify", plan).exit_code == 0, "it is complete")

        run("topics", "create", "jbod", "-p", "6")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for partition in range(6):
            producer.produce("jbod", b"x" * 50_000 * (partition + 1), partition=partition)
        assert producer.flush(20) == 0
        apply("--drain-dir", str(first))
        assert not list(first.glob("jbod-?"))
        apply("--balance-dirs")
        sizes = [
            sum(path.stat().st_size for path in directory.glob("jbod-?/*.log"))
            for directory in (first, second)
        ]
        assert max(sizes) < 1.2 * min(sizes), sizes
        even = run("reassign", "plan", "--balance-dirs")
        assert (even.exit_code, "nothing to reassign" in even.stderr) == (0, True)
        unknown = run("reassign", "plan", "--drain-dir", "/nowhere")
        assert "no such log directory: /nowhere" in unknown.stderr
        both = run("reassign", "plan", "--balance-dirs", "--drain", "1")
        assert both.exit_code == 2
