"""acls, users and quotas on our broker: changes, guards, files, JSON shapes, examples."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kctl.docs.tree import walk_commands
from tests.support.broker import RunningBroker, running_broker
from tests.support.kctl import KctlResult, run_kctl

Run = Callable[..., KctlResult]

SECRET = "canary-password"


@pytest.fixture(scope="module")
def secured_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with an authorizer, on which everyone is a super user."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with running_broker(tmp_path_factory.mktemp("secured"), **settings) as broker:
        yield broker


@pytest.fixture
def run(secured_broker: RunningBroker, tmp_path: Path) -> Iterator[Run]:
    """kctl on that broker, which has no ACLs, users and quotas before and after a test."""
    env = {
        "KCTL_BOOTSTRAP_SERVERS": secured_broker.bootstrap_servers,
        "KCTL_CONFIG": str(tmp_path / "contexts.yaml"),
        "ALICE_PASSWORD": SECRET,
    }

    def kctl(line: str, **more: str) -> KctlResult:
        return run_kctl(*shlex.split(line), env=env, **more)

    yield kctl
    if kctl("acls list -o json").json:
        assert kctl("acls remove --all --yes").exit_code == 0
    for user in {row["user"] for row in kctl("users list -o json").json}:
        assert kctl(f"users delete {user} --yes").exit_code == 0
    for row in {json.dumps(row["parts"]) for row in kctl("quotas list -o json").json}:
        words = " ".join(
            f"--{kind}-defaults" if name is None else f"--{kind} {name}"
            for kind, name in json.loads(row).items()
        )
        assert kctl(f"quotas delete {words} --yes").exit_code == 0


def acls(run: Run) -> list[dict[str, object]]:
    found: list[dict[str, object]] = run("acls list -o json").json
    return found


def test_acl_is_added_once_and_removed(run: Run) -> None:
    add = "acls add topic:orders --allow alice --operation read --operation describe -o json"
    assert [row["status"] for row in run(add).json] == ["added", "added"]
    assert [row["status"] for row in run(add).json] == ["already exists", "already exists"]
    assert acls(run)[0] == {
        "principal": "User:alice",
        "permission": "ALLOW",
        "operation": "READ",
        "resource": "topic:orders",
        "pattern_type": "LITERAL",
        "host": "*",
        "resource_type": "TOPIC",
        "resource_name": "orders",
    }
    removed = run("acls remove topic:orders --allow alice --operation read --yes -o json")
    assert [row["operation"] for row in removed.json] == ["READ"]
    assert [row["operation"] for row in acls(run)] == ["DESCRIBE"]


def test_roles_add_what_producers_and_consumers_need(run: Run) -> None:
    run("acls add topic:t transactional-id:x --allow p --producer --idempotent")
    run("acls add topic:t group:g --allow c --consumer")
    found = {(row["principal"], row["resource"], row["operation"]) for row in acls(run)}
    assert found == {
        *(("User:p", "topic:t", one) for one in ("WRITE", "DESCRIBE", "CREATE")),
        *(("User:p", "transactional-id:x", one) for one in ("WRITE", "DESCRIBE")),
        ("User:p", "cluster:kafka-cluster", "IDEMPOTENT_WRITE"),
        *(("User:c", "topic:t", one) for one in ("READ", "DESCRIBE")),
        ("User:c", "group:g", "READ"),
    }
    run("acls remove topic:t group:g --allow c --consumer --yes")
    assert {row["principal"] for row in acls(run)} == {"User:p"}


def test_removal_shows_a_plan_and_needs_a_confirmation(run: Run) -> None:
    run("acls add topic:orders --allow alice --deny bob")
    refused = run("acls remove --principal alice")
    assert refused.exit_code == 1 and "--yes" in refused.stderr
    dry = run("acls remove --principal alice --dry-run -o json")
    assert [row["principal"] for row in dry.json] == ["User:alice"]
    assert len(acls(run)) == 2
    assert run("acls remove --principal unknown --yes").exit_code == 1
    assert run("acls remove --yes").exit_code == 2


def test_dry_run_of_an_addition_changes_nothing(run: Run) -> None:
    dry = run("acls add topic:orders --allow alice --producer --dry-run -o json")
    assert [row["change"] for row in dry.json] == ["add"] * 3
    assert acls(run) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("acls add topic:orders --allow alice --operation eat", "'eat' is not an operation"),
        ("acls add group:g --allow alice --operation write", "a group has no operation WRITE"),
        ("acls add orders --allow alice", "'orders' is not a resource"),
        ("acls add topic:orders", "no principal specified"),
        ("acls add --allow alice", "no resource specified"),
        ("acls add topic:a --allow alice --pattern match", "only selects ACLs"),
        ("acls add topic:a --allow alice --consumer", "requires a topic and a group"),
        ("acls add group:a --allow alice --producer", "requires a topic"),
        ("acls add topic:a --allow alice --idempotent", "requires --producer"),
        ("acls add topic:a --allow a --producer --operation read", "determine the operations"),
        ("acls explain alice write group:g", "a group has no operation WRITE"),
        ("quotas set producer_byte_rate=x --user a", "expected a number of bytes"),
        ("quotas set speed=1 --user a", "a client has no quota speed"),
        ("quotas set connection_creation_rate=1 --user a", "a client has no quota"),
        ("quotas set producer_byte_rate=1", "no entity specified"),
        ("quotas set producer_byte_rate=1 --user a --ip 1.1.1.1", "not an entity"),
        ("quotas set request_percentage=-1 --user a", "must not be negative"),
        ("quotas resolve", "no client specified"),
        ("users set alice", "the password of alice is missing"),
        ("users set alice --password-env NOT_SET", "NOT_SET is not set"),
        ("users set alice --password-file /no/such", "/no/such"),
        ("tokens renew", "no token specified"),
    ],
)
def test_bad_input_is_a_usage_error_that_changes_nothing(run: Run, line: str, words: str) -> None:
    result = run(line)
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr
    assert acls(run) == []


def test_acls_survive_export_and_apply(run: Run, tmp_path: Path) -> None:
    run("acls add topic:orders group:g --allow alice --consumer --allow-host 10.0.0.1")
    run("acls add topic:o --pattern prefixed --deny 'CN=x,O=y' --operation describe-configs")
    run("acls add cluster --allow root")
    before = acls(run)
    file = tmp_path / "acls.yaml"
    file.write_text(run("acls export").output)
    unchanged = run(f"acls apply {file}")
    assert unchanged.exit_code == 0 and "no difference" in unchanged.stderr
    run("acls remove --all --yes")
    run("acls add topic:extra --allow eve")
    plan = run(f"acls apply {file} --prune --dry-run -o json").json
    assert sorted({row["change"] for row in plan}) == ["add", "remove"]
    assert len(acls(run)) == 1
    assert run(f"acls apply {file} --prune").exit_code == 1
    assert run(f"acls apply {file} --prune --yes").exit_code == 0
    assert acls(run) == before
    as_json = tmp_path / "acls.json"
    as_json.write_text(run("acls export -o json").output)
    assert run(f"acls apply {as_json} --prune --dry-run -o json").json == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "acls.yaml"),
        ("a: 1", "the list `acls`"),
        ("acls: [1]", "entry 1: expected a mapping"),
        ("acls: [{operations: [read], colour: red}]", "entry 1: unknown key 'colour'"),
        ("acls: [{operations: [read], resource: topic:a}]", "`permission` must be"),
        (
            "acls: [{operations: [eat], resource: 'topic:a', permission: allow, principal: a}]",
            "'eat' is not an operation",
        ),
    ],
)
def test_wrong_file_is_refused_as_a_whole(run: Run, tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "acls.yaml"
    file.write_text(text)
    result = run(f"acls apply {file}")
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr


def test_explain_names_the_rule_and_its_remedies_work(run: Run) -> None:
    run("acls add topic:o --pattern prefixed --deny alice")
    asked = "acls explain alice write topic:orders -o json"
    denied = run(asked)
    assert denied.exit_code == 3
    assert denied.json["rule"] == "DENY ALL on prefix topic:o to User:alice"
    for remedy in denied.json["remedies"]:
        confirm = " --yes" if " remove " in remedy else ""
        assert run(remedy.removeprefix("kctl ") + confirm).exit_code == 0
    allowed = run(asked)
    assert (allowed.exit_code, allowed.json["allowed"]) == (0, True)
    table = run("acls explain alice write topic:orders").output
    assert "to deny it:\n  kctl acls remove topic:orders --allow User:alice" in table


def test_audit_finds_problems_with_status_3(run: Run) -> None:
    assert run("acls audit").exit_code == 0
    run("acls add topic:gone --allow alice --operation read")
    found = run("acls audit -o json")
    assert found.exit_code == 3
    assert [(row["finding"], row["resource"]) for row in found.json] == [
        ("missing-topic", "topic:gone")
    ]
    assert run(found.json[0]["remedy"].removeprefix("kctl ") + " --yes").exit_code == 0
    assert run("acls audit").exit_code == 0


def test_user_is_created_changed_and_deleted_and_no_secret_is_shown(run: Run) -> None:
    first = run("users set alice --password-env ALICE_PASSWORD --iterations 5000 -vv")
    assert first.exit_code == 0, first.stderr
    assert run("users list -o json").json == [
        {"user": "alice", "mechanism": "SCRAM-SHA-512", "iterations": 5000}
    ]
    again = run("users set alice --password-env ALICE_PASSWORD")
    assert again.exit_code == 1 and "Replace the password of alice?" in again.stderr
    yes = run("users set alice --password-env ALICE_PASSWORD --mechanism SCRAM-SHA-256 --yes")
    dry = run("users set alice --dry-run -o json")
    assert dry.json[0]["now"] == "iterations=5000"
    found = run("users list alice -o json").json
    assert [row["mechanism"] for row in found] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    gone = run("users delete alice --mechanism SCRAM-SHA-512 --yes")
    assert run("users list -o json").json[0]["mechanism"] == "SCRAM-SHA-256"
    assert "no such user: 'alica'" in run("users list alica").stderr
    assert "did you mean alice" in run("users delete alica --yes").stderr
    for result in (first, again, yes, dry, gone):
        assert SECRET not in result.output + result.stderr


def test_password_can_come_from_a_file_and_from_stdin(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    assert run(f"users set a --password-file {file}").exit_code == 0
    assert run("users set b --password-file -", stdin=f"{SECRET}\n").exit_code == 0
    assert run("users set c --password-file -", stdin="\n").exit_code == 2
    assert run("users list -o name").output == "a\nb\n"


@pytest.mark.zk
def test_first_users_are_written_to_an_empty_zookeeper(run: Run, zookeeper: str) -> None:
    where = f"--zookeeper {zookeeper}"
    assert run(f"users list {where} -o json").json == []
    assert run(f"users set brokér {where} --password-env ALICE_PASSWORD").exit_code == 0
    assert run(f"users list {where} -o name").output == "brokér\n"
    assert run(f"users delete brokér {where} --yes").exit_code == 0
    assert run(f"users list {where} -o json").json == []


def test_quota_is_set_changed_and_deleted(run: Run) -> None:
    assert run("quotas set producer_byte_rate=10MB --user alice").exit_code == 0
    again = run("quotas set producer_byte_rate=1MB --user alice")
    assert again.exit_code == 1 and "10000000" in again.stderr
    dry = run("quotas set producer_byte_rate=1MB --user alice --dry-run -o json").json
    assert (dry[0]["now"], dry[0]["then"]) == (10_000_000, 1_000_000)
    assert run("quotas list -o json").json == [
        {
            "entity": "user:alice",
            "quota": "producer_byte_rate",
            "value": 10_000_000,
            "parts": {"user": "alice"},
        }
    ]
    assert "does not have consumer_byte_rate" in (
        run("quotas delete consumer_byte_rate --user alice --yes").stderr
    )
    assert run("quotas delete --user alice --yes").exit_code == 0
    assert run("quotas list -o json").json == []


def test_resolve_names_the_quota_that_applies_and_those_it_overrides(run: Run) -> None:
    for line in ("--client-defaults", "--user-defaults", "--user alice", "--user alice --client c"):
        assert run(f"quotas set consumer_byte_rate={len(line)} {line}").exit_code == 0
    run("quotas set connection_creation_rate=5 --ip-defaults")
    found = {
        row["quota"]: row for row in run("quotas resolve --user alice --client c -o json").json
    }
    assert found["consumer_byte_rate"]["entity"] == "user:alice client:c"
    assert found["consumer_byte_rate"]["overridden"] == [
        "user:alice 12",
        "user:<default> 15",
        "client:<default> 17",
    ]
    assert found["producer_byte_rate"]["value"] is None
    (address,) = run("quotas resolve --ip 10.0.0.1 -o json").json
    assert (address["value"], address["entity"]) == (5, "ip:<default>")


CHANGES = [
    "acls add topic:a --allow b",
    "acls remove --all --yes",
    "acls apply {file}",
    "users set b --password-env ALICE_PASSWORD",
    "users delete alice --yes",
    "quotas set producer_byte_rate=1 --user b",
    "quotas delete --user alice --yes",
    "tokens create",
    "tokens renew x",
]


def test_read_only_context_refuses_every_change(
    run: Run, secured_broker: RunningBroker, tmp_path: Path
) -> None:
    file = tmp_path / "acls.yaml"
    file.write_text(
        "acls: [{principal: c, permission: allow, resource: 'topic:a', operations: [read]}]"
    )
    run("acls add topic:a --allow alice")
    run("users set alice --password-env ALICE_PASSWORD")
    run("quotas set producer_byte_rate=1 --user alice")
    servers = secured_broker.bootstrap_servers
    run(f"context set prod -b {servers} --read-only")
    looks = ["acls list", "users list", "quotas list"]
    before = [run(look).output for look in looks]
    for line in CHANGES:
        result = run(f"{line.format(file=file)} --context prod -b {servers}")
        assert (result.exit_code, "is read-only" in result.stderr) == (1, True), (line, result)
    assert [run(look).output for look in looks] == before
    # The rules of a context apply to its cluster however it is named: also to what cleans up.
    assert run("context delete prod").exit_code == 0


EXAMPLES = [
    example
    for command in walk_commands()
    if len(command.path) > 1 and command.path[1] in ("acls", "users", "quotas")
    for example in command.examples
]
NEEDS_MORE = ("kctl users set alice", "broker.secret")
"""A prompt; a ZooKeeper."""


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_of_the_help_works(
    run: Run, example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if example == NEEDS_MORE[0] or NEEDS_MORE[1] in example:
        pytest.skip("needs a terminal, or a ZooKeeper")
    monkeypatch.chdir(tmp_path)
    run("acls add topic:orders --allow alice --operation read")
    run("users set alice --password-env ALICE_PASSWORD --mechanism SCRAM-SHA-256")
    run("quotas set producer_byte_rate=1 --user alice")
    Path("acls.yaml").write_text(run("acls export").output)
    result = run(example.removeprefix("kctl "))
    checks = ("kctl acls audit", "kctl acls explain User:shop")
    assert result.exit_code == (3 if example.startswith(checks) else 0), result.stderr


def test_names_of_users_and_principals_are_completed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run("users set zoe --password-env ALICE_PASSWORD")
    run("acls add topic:a --allow alice --allow 'User:*' --deny Group:staff")
    assert run("complete users").output == "zoe\n"
    assert run("complete principals").output == "alice\n"
