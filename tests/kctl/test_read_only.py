"""A read-only context refuses every command that changes the cluster."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kctl.docs.tree import walk_commands
from tests.support.broker import RunningBroker
from tests.support.kctl import KctlResult, run_kctl
from tests.support.registry import running_registry

Run = Callable[..., KctlResult]

CHANGING = [
    "topics create new",
    "topics clone kept new",
    "topics alter kept --partitions 5 --yes",
    "topics delete kept --yes",
    "configs alter --entity-type topics --entity-name kept --add-config retention.ms=1 --yes",
    "configs set topic:kept retention.ms=1 --yes",
    "configs delete topic:kept segment.ms --yes",
    "configs append topic:kept cleanup.policy=compact --yes",
    "configs subtract topic:kept cleanup.policy=compact --yes",
    "produce kept",
    "consume kept --group joining --exit",
    "consume kept --group joining --exit --no-commit",
    "consume kept --exit -X group.id=joining -X enable.auto.commit=true",
    "delete-records kept --offset 1 --yes",
    "perf produce kept -n 1",
    "perf consume kept -n 1 -X group.id=joining -X enable.auto.commit=True",
    "perf latency kept -n 1",
    "verify produce kept -n 1",
    "verify consume kept --format kafka --group joining --max-messages 1",
    "streams reset settled --input-topics kept --yes",
    "groups reset-offsets settled --topic kept --to-earliest --execute",
    "groups delete-offsets settled --topic kept --yes",
    "groups delete settled --yes",
    "metadata copy /nowhere zookeeper://localhost:1/x",
    "throttle set 1MB kept --yes",
    "acls add topic:kept --allow alice",
    "users set alice --password-env HOME",
    "quotas set producer_byte_rate=1 --user alice",
    "tokens create",
    "tokens renew some-token",
    "import /nowhere",
    "registry register kept-value FILES/next.avsc",
    "registry register new-value FILES/next.avsc",
    "registry delete kept-value --yes",
    "registry compatibility kept-value --set none",
    "registry compatibility --set none",
]
NEED_MORE = {
    # Their plan is empty on an idle cluster with one broker; they confirm it with `confirm_plan`,
    # or are tested with reassignments (test_reassign_commands.py).
    *("groups remove-members", "transactions abort", "elect-leaders", "throttle clear"),
    *("reassign run", "reassign execute", "reassign cancel", "reassign verify"),
    # Tested with ACLs, users and quotas that exist (test_security_commands.py).
    *("acls remove", "acls apply", "users delete", "quotas delete", "tokens expire"),
    # Only KRaft clusters have them (test_kraft_commands.py, test_on_kraft_kafka.py).
    *("features upgrade", "features downgrade", "features disable", "cluster unregister"),
}
READING = {
    *("topics list", "topics describe", "topics configs", "configs describe", "configs diff"),
    *("offsets", "groups list", "groups describe", "groups watch", "transactions list"),
    *("transactions describe", "transactions producers", "transactions hanging"),
    *("cluster describe", "cluster id", "brokers list", "api-versions", "log-dirs"),
    *("reassign plan", "reassign list", "throttle list", "replicas verify"),
    *("acls list", "acls explain", "acls audit", "acls export", "users list"),
    *("quotas list", "quotas resolve", "tokens list"),
    *("zk ls", "zk get", "zk tree", "spark-export run", "spark-export verify"),
    *("spark-export list", "spark-export compact"),  # of exports, not of the cluster
    *("health", "metrics", "monitor run", "monitor history"),
    *("quorum status", "quorum replication", "features describe", "features versions"),
    *("events", "topics watch", "zk watch", "replicas list", "top"),
    *("registry list", "registry versions", "registry show", "registry diff", "registry check"),
}
OF_THIS_MACHINE = ("dump-log", "context", "dev", "completion")


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a registry with the subject `kept-value`, and a directory with schemas."""
    files = tmp_path_factory.mktemp("schemas")
    (files / "first.avsc").write_text('"string"')
    (files / "next.avsc").write_text('"bytes"')
    with running_registry() as running:
        register = ("registry", "register", "kept-value", str(files / "first.avsc"))
        assert run_kctl(*register, "--registry", running.url).exit_code == 0
        yield running.url, files


@pytest.fixture(scope="module")
def run(
    shared_broker: RunningBroker,
    registry: tuple[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """kctl whose current context is a broker, read-only; it has a topic and a group."""
    servers = shared_broker.bootstrap_servers
    url, files = registry
    env = {
        "KCTL_CONFIG": str(tmp_path_factory.mktemp("config") / "contexts.yaml"),
        "KCTL_SCHEMA_REGISTRY_URL": url,
    }
    create = ("topics", "create", "kept", "--config", "segment.ms=100000")
    assert run_kctl(*create, "-b", servers).exit_code == 0
    assert run_kctl("produce", "kept", "-b", servers, stdin="a\nb\n").exit_code == 0
    settle = ("consume", "kept", "--group", "settled", "--exit", "-b", servers)
    assert run_kctl(*settle).exit_code == 0
    assert run_kctl("context", "set", "prod", "-b", servers, "--read-only", env=env).exit_code == 0
    return lambda *words, **more: run_kctl(
        *(word.replace("FILES", str(files)) for word in words), env=env, **more
    )


def state(run: Run) -> list[str]:
    """What the commands above would change."""
    looks = ["topics describe", "groups describe --all", "offsets kept", "configs describe kept"]
    looks += ["registry list --deleted", "registry versions kept-value", "registry compatibility"]
    return [run(*look.split(), "-o", "json").output for look in looks]


@pytest.mark.parametrize("line", CHANGING)
def test_command_is_refused_and_nothing_changes(run: Run, line: str) -> None:
    before = state(run)
    result = run(*line.split(), stdin="c\n")
    assert (result.exit_code, "context 'prod' is read-only" in result.stderr) == (1, True), result
    assert state(run) == before
    assert run("groups", "list", "-o", "name").output.split() == ["settled"]


@pytest.mark.parametrize(
    "line",
    [
        "consume kept --exit",
        "consume kept --exit -X group.id=joining",
        "perf consume kept -n 2 -X group.id=joining -X enable.auto.commit=false",
    ],
)
def test_reading_without_a_group_is_allowed(run: Run, line: str) -> None:
    assert run(*line.split()).exit_code == 0
    assert run("groups", "list", "-o", "name").output.split() == ["settled"]


def test_every_command_is_classified() -> None:
    paths = {" ".join(found.path[1:]) for found in walk_commands()} - {""}
    verbs = {path for path in paths if not any(one.startswith(f"{path} ") for one in paths)}
    changing = {
        max((v for v in verbs if f"{line} ".startswith(f"{v} ")), key=len) for line in CHANGING
    }
    local = {verb for verb in verbs if verb.startswith(OF_THIS_MACHINE)}
    assert changing | NEED_MORE | READING | local == verbs
