"""acls, users, quotas and tokens on Apache Kafka with AclAuthorizer, beside Kafka's own tools.

Kafka keeps ACLs in hash tables whose order differs from run to run, so their blocks and lines are
compared as sets; everything else is compared byte by byte.
"""

import asyncio
import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.net.authentication import Sasl, Security
from broker.net.client import Client
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.security.acls import (
    SUPPORTED_OPERATIONS,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from broker.security.plain import plain_client
from kctl.admin.acls import create_acls, describe_acls
from kctl.model.acl_decisions import AuthorizerSettings, Request
from kctl.model.acls import Acl, AclFilter, Resource, ResourcePattern
from kctl.plans.acls.explain import decide
from tests.support.kctl import KctlResult, run_kctl
from tests.support.processes import free_port
from tests.support.real_kafka import RealKafka, java_command, running_kafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

ACLS = "kafka.admin.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
USERS = ("alice", "bob", "carol")


@dataclass(frozen=True)
class Secured:
    """A Kafka with an authorizer; everyone on its plaintext listener is a super user."""

    kafka: RealKafka
    sasl: str
    directory: Path

    def kctl(self, *args: str) -> KctlResult:
        """As a super user."""
        result = run_kctl(*args, "-b", self.kafka.bootstrap_servers)
        assert result.exit_code in (0, 3), result.stderr
        return result

    def tool(self, tool: str, *args: str) -> str:
        """As a super user."""
        done = self.kafka.tool(tool, "--bootstrap-server", self.kafka.bootstrap_servers, *args)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def properties(self, mechanism: str, jaas: str) -> str:
        """A client.properties."""
        path = self.directory / "client.properties"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config={jaas}\n"
        )
        return str(path)

    def login(self, user: str) -> str:
        """The client.properties of a user."""
        return self.properties(
            "PLAIN", f'{PLAIN} required username="{user}" password="{user}-secret";'
        )


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    port = free_port()
    listener = "listener.name.sasl_plaintext"
    passwords = " ".join(f'user_{user}="{user}-secret"' for user in USERS)
    settings = {
        "more.listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{listener}.plain.sasl.jaas.config": f"{PLAIN} required {passwords};",
        f"{listener}.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        f"{listener}.scram-sha-512.sasl.jaas.config": f"{SCRAM} required;",
        f"{listener}.oauthbearer.sasl.jaas.config": (
            f'{OAUTH} required unsecuredLoginStringClaim_sub="broker";'
        ),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "secret of the tokens",
    }
    with running_kafka(directory, settings=settings) as kafka:
        yield Secured(kafka, f"127.0.0.1:{port}", directory)


def blocks(text: str) -> set[tuple[str, frozenset[str]]]:
    """The resources in the output of kafka-acls, each with its entries."""
    found = set()
    for block in re.split(r" \n\n(?=Current|Adding|ACLs|$)", text.strip(" ")):
        heading, _, entries = block.partition(": \n ")
        found.add((heading, frozenset(entries.removesuffix(" \n\n").split("\n"))))
    return found


ROUNDS = [
    ("--topic", "orders", "--allow-principal", "User:alice", "--operation", "Read"),
    ("--topic", "orders", "--allow-principal", "User:shop", "--producer", "--allow-host", "::1"),
    (
        *("--topic", "o", "--group", "g", "--allow-principal", "User:a b", "--consumer"),
        *("--resource-pattern-type", "prefixed"),
    ),
    ("--topic", "*", "--cluster", "--deny-principal", "User:*", "--operation", "Alter"),
    (
        *("--topic", "x", "--transactional-id", "t", "--producer", "--idempotent"),
        *("--allow-principal", "User:CN=shop,O=Acme"),
    ),
    ("--user-principal", "User:job", "--allow-principal", "User:s", "--operation", "CreateTokens"),
]


def test_acls_print_what_kafka_acls_prints(secured: Secured) -> None:
    for options in ROUNDS:
        theirs = secured.tool(ACLS, "--add", *options)
        before = secured.kctl("acls", "list", "-o", "json").json
        secured.kctl("acls", "remove", "--all", "--yes", "--format", "kafka")
        ours = secured.kctl("acls", "add", *options, "--format", "kafka").output
        assert blocks(ours) == blocks(theirs)
        assert len(ours) == len(theirs)
        assert secured.kctl("acls", "list", "-o", "json").json == before
        removed = secured.kctl("acls", "remove", "--all", "--yes", "--format", "kafka")
        assert removed.output == ""
    assert secured.tool(ACLS, "--list") == ""


def test_filters_select_what_those_of_kafka_acls_select(secured: Secured) -> None:
    for options in ROUNDS:
        secured.kctl("acls", "add", *options)
    for options in (
        ("--topic", "orders", "--resource-pattern-type", "match"),
        ("--topic", "orders", "--topic", "x"),
        ("--group", "g", "--resource-pattern-type", "any"),
        ("--cluster",),
        ("--principal", "User:alice", "--principal", "User:shop"),
    ):
        ours = secured.kctl("acls", "list", *options, "--format", "kafka").output
        theirs = secured.tool(ACLS, "--list", *options)
        assert blocks(ours) == blocks(theirs) and len(ours) == len(theirs), options
    exported = secured.directory / "acls.yaml"
    exported.write_text(secured.kctl("acls", "export").output)
    before = secured.kctl("acls", "list", "-o", "json").json
    secured.kctl("acls", "remove", "--all", "--yes")
    secured.kctl("acls", "apply", str(exported))
    assert secured.kctl("acls", "list", "-o", "json").json == before
    secured.kctl("acls", "remove", "--all", "--yes")


async def authorized_operations(address: str, user: str, topics: list[str]) -> dict[str, int]:
    """The operations a broker allows a user on topics, as bits."""
    sasl = Sasl("PLAIN", lambda: plain_client(user, f"{user}-secret"))
    async with Client(address, security=Security(sasl=sasl)) as client:
        response = await client.send(
            MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in topics],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            )
        )
    return {
        topic.name or "": 0 if topic.error_code else topic.topic_authorized_operations
        for topic in response.topics
    }


def random_acl(rng: random.Random) -> Acl:
    operations = [*SUPPORTED_OPERATIONS[ResourceType.TOPIC], AclOperation.ALL]
    is_prefix = rng.random() < 0.3
    name = rng.choice(("a", "ab", "abc", "b") if is_prefix else ("a", "ab", "abc", "b", "*"))
    kind = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    return Acl(
        ResourcePattern(ResourceType.TOPIC, name, kind),
        rng.choice(("User:alice", "User:bob", "User:*")),
        rng.choice(("*", "*", "127.0.0.1", "10.0.0.1")),
        rng.choice(operations),
        AclPermissionType.DENY if rng.random() < 0.3 else AclPermissionType.ALLOW,
    )


def test_explain_decides_as_the_authorizer_does(secured: Secured) -> None:
    """Oracle: the authorized operations in the broker's own responses."""
    topics = ["a", "ab", "abc", "b"]
    secured.kctl("topics", "create", *topics)
    rng = random.Random(22)
    compared = 0
    for _ in range(25):
        acls = list({random_acl(rng) for _ in range(rng.randint(0, 8))})

        async def prepare(acls: list[Acl] = acls) -> list[Acl]:
            async with Client(secured.kafka.bootstrap_servers) as client:
                assert not any(one.error for one in await create_acls(client, acls))
                return await describe_acls(client, AclFilter())

        present = asyncio.run(prepare())
        assert set(present) == set(acls)
        for user in ("alice", "bob"):
            bits = asyncio.run(authorized_operations(secured.sasl, user, topics))
            for topic in topics:
                expected = {
                    operation
                    for operation in SUPPORTED_OPERATIONS[ResourceType.TOPIC]
                    if decide(
                        acls,
                        Request(
                            f"User:{user}",
                            operation,
                            Resource(ResourceType.TOPIC, topic),
                            "127.0.0.1",
                        ),
                        AuthorizerSettings(),
                    ).allowed
                }
                if AclOperation.DESCRIBE not in expected:
                    assert bits[topic] == 0, (acls, user, topic)
                    continue
                found = {one for one in AclOperation if bits[topic] >> one & 1}
                assert found == expected, (acls, user, topic)
                compared += 1
        if acls:
            secured.kctl("acls", "remove", "--all", "--yes")
    assert compared > 50


def test_hidden_super_users_are_mentioned(secured: Secured) -> None:
    result = secured.kctl("acls", "explain", "alice", "write", "topic:orders")
    assert "the brokers do not reveal super.users" in result.stderr
    told = secured.kctl("acls", "explain", "root", "write", "topic:orders", "--super-user", "root")
    assert told.exit_code == 0 and "super user" in told.output


def test_remedies_are_commands_that_work(secured: Secured) -> None:
    secured.kctl("acls", "add", "topic:a", "--pattern", "prefixed", "--deny", "alice")
    asked = ("acls", "explain", "alice", "write", "topic:abc", "-o", "json")
    denied = secured.kctl(*asked)
    assert denied.exit_code == 3
    for line in denied.json["remedies"]:
        words = line.split()[1:]
        secured.kctl(*words, *(["--yes"] if "remove" in words else []))
    allowed = secured.kctl(*asked)
    assert allowed.exit_code == 0
    assert allowed.json["rule"] == "ALLOW WRITE on topic:abc to User:alice"
    secured.kctl("acls", "remove", "--all", "--yes")


QUOTAS = [
    (("producer_byte_rate=1024,consumer_byte_rate=20000000",), ("--user", "alice")),
    (("request_percentage=12.5",), ("--user", "alice", "--client", "c1")),
    (("consumer_byte_rate=9",), ("--client-defaults",)),
    (("controller_mutation_rate=3",), ("--user-defaults",)),
    (("producer_byte_rate=8",), ("--user-defaults", "--client", "c2")),
    (("connection_creation_rate=7",), ("--ip", "127.0.0.9")),
]


def test_quotas_and_users_print_what_kafka_configs_prints(secured: Secured) -> None:
    kafka = ("--format", "kafka")
    for (values,), entity in QUOTAS:
        theirs = secured.tool(CONFIGS, "--alter", "--add-config", values, *entity)
        ours = secured.kctl("quotas", "set", "--add-config", values, *entity, "--yes", *kafka)
        assert ours.output == theirs
    for number in range(13):
        secured.kctl("quotas", "set", "producer_byte_rate=1", "--user", f"user-{number}")
    password = secured.directory / "password"
    password.write_text("open sesame\n")
    theirs = secured.tool(
        CONFIGS, "--alter", "--add-config", "SCRAM-SHA-256=[password=x]", "--user", "alice"
    )
    secret = ("--password-file", str(password), "--mechanism", "SCRAM-SHA-512")
    assert secured.kctl("users", "set", "alice", *secret, *kafka).output == theirs
    for described in (
        ("--entity-type", "users"),
        ("--user", "alice"),
        ("--user", "alice", "--client", "c1"),
        ("--user-defaults",),
        ("--entity-type", "clients"),
        ("--entity-type", "users", "--entity-type", "clients"),
        ("--entity-type", "ips"),
    ):
        expected = secured.tool(CONFIGS, "--describe", *described)
        assert secured.kctl("quotas", "list", *described, *kafka).output == expected, described
    assert secured.kctl("users", "list", *kafka).output == secured.tool(
        CONFIGS, "--describe", "--entity-type", "users"
    )
    theirs = secured.tool(CONFIGS, "--alter", "--delete-config", "SCRAM-SHA-256", "--user", "alice")
    assert secured.kctl("users", "delete", "alice", "--yes", *kafka).output == theirs
    assert secured.kctl("users", "list", "-o", "json").json == []
    for entry in {row["entity"] for row in secured.kctl("quotas", "list", "-o", "json").json}:
        words = [part.split(":") for part in entry.split()]
        options = [
            text
            for kind, name in words
            for text in ([f"--{kind}-defaults"] if name == "<default>" else [f"--{kind}", name])
        ]
        secured.kctl("quotas", "delete", *options, "--yes")
    assert secured.tool(CONFIGS, "--describe", "--entity-type", "users") == ""


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("through_zookeeper", [False, True])
def test_user_can_log_in_with_the_password(
    secured: Secured, mechanism: str, through_zookeeper: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"dora{mechanism[-3:]}{through_zookeeper}"
    monkeypatch.setenv("DORAS_PASSWORD", 'it\'s "secret", =€')
    where = ["--zookeeper", secured.kafka.zookeeper] if through_zookeeper else []
    words = ["users", "set", user, "--mechanism", mechanism, "--password-env", "DORAS_PASSWORD"]
    secured.kctl(*words, *where)
    monkeypatch.setenv("KCTL_SASL_PASSWORD", 'it\'s "secret", =€')
    jaas = f'{SCRAM} required username="{user}";'
    config = secured.properties(mechanism, jaas)
    for _ in range(50):  # a change in ZooKeeper reaches the broker a moment later
        logged_in = run_kctl("topics", "list", "-b", secured.sasl, "--command-config", config)
        if logged_in.exit_code == 0:
            break
    assert logged_in.exit_code == 0, logged_in.stderr
    secured.kctl("users", "delete", user, "--yes", *where)


def masked(text: str) -> str:
    """Without what differs between two tokens."""
    text = re.sub(r"[\w-]{22}(?= |\n)", "<token>", text)
    return re.sub(r"[\w+/]{86}==", "<hmac>", text)


def test_tokens_print_what_kafka_delegation_tokens_prints(secured: Secured) -> None:
    config = secured.login("alice")
    shared = ("--command-config", config)
    kafka = ("-b", secured.sasl, *shared, "--format", "kafka")

    def tool(*args: str) -> str:
        done = secured.kafka.tool(TOKENS, "--bootstrap-server", secured.sasl, *shared, *args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    create = ("--max-life-time-period", "86400000", "--renewer-principal", "User:bob")
    theirs = tool("--create", *create)
    ours = run_kctl("tokens", "create", *create, *kafka).output
    same_minute = re.sub(r"T\d\d:\d\d", "T<time>", masked(theirs))
    assert re.sub(r"T\d\d:\d\d", "T<time>", masked(ours)) == same_minute
    owner = ("--owner-principal", "User:alice")
    listed = tool("--describe", *owner)
    assert run_kctl("tokens", "list", *owner, *kafka).output == listed
    hmacs = re.findall(r"[\w+/]{86}==", listed)
    assert len(hmacs) == 2
    hmac_file = secured.directory / "hmac"
    for verb, option in (("renew", "--renew-time-period"), ("expire", "--expiry-time-period")):
        period = "3600000"
        theirs = tool(f"--{verb}", option, period, "--hmac", hmacs[0])
        hmac_file.write_text(hmacs[0])
        words = ["tokens", verb, "--hmac-file", str(hmac_file), option, period]
        ours = run_kctl(*words, *(["--yes"] if verb == "expire" else []), *kafka).output
        assert re.sub(r"T\d\d:\d\d", "T", ours) == re.sub(r"T\d\d:\d\d", "T", theirs)


def test_token_is_a_login_until_it_is_expired(secured: Secured) -> None:
    alice = ("-b", secured.sasl, "--command-config", secured.login("alice"))
    created = run_kctl("tokens", "create", *alice, "-o", "json")
    assert created.exit_code == 0, created.stderr
    token = created.json
    listed = run_kctl("tokens", "list", *alice, "-o", "json")
    assert token["hmac"] not in listed.output
    assert token["token_id"] in {row["token_id"] for row in listed.json}
    jaas = (
        f'{SCRAM} required username="{token["token_id"]}" password="{token["hmac"]}" '
        'tokenauth="true";'
    )
    config = secured.properties("SCRAM-SHA-512", jaas)
    by_token = ("-b", secured.sasl, "--command-config", config)
    assert run_kctl("topics", "list", *by_token).exit_code == 0
    # Kafka refuses further tokens to a client that logged in with one.
    refused = run_kctl("tokens", "create", *by_token)
    assert refused.exit_code == 1
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in refused.stderr
    alice = ("-b", secured.sasl, "--command-config", secured.login("alice"))
    assert run_kctl("tokens", "expire", token["token_id"], "--yes", *alice).exit_code == 0
    secured.properties("SCRAM-SHA-512", jaas)
    assert "refused the login" in run_kctl("topics", "list", *by_token).stderr


def test_oauth_token_is_a_login(secured: Secured) -> None:
    jaas = f'{OAUTH} required unsecuredLoginStringClaim_sub="carol";'
    shared = ("-b", secured.sasl, "--command-config", secured.properties("OAUTHBEARER", jaas))
    secured.kctl("topics", "create", "oauth")
    add = ("acls", "add", "topic:oauth", "group:*", "--allow", "carol")
    secured.kctl(*add, "--consumer", "--producer")
    produced = run_kctl("produce", "oauth", *shared, env=None, stdin="one\n")
    assert produced.exit_code == 0, produced.stderr
    assert run_kctl("consume", "oauth", "--exit", *shared).output == "one\n"
    expired = f'{OAUTH} required unsecuredLoginStringClaim_sub="x" unsecuredLoginListClaim_x="";'
    config = secured.properties("OAUTHBEARER", expired)
    assert run_kctl("topics", "list", "-b", secured.sasl, "--command-config", config).exit_code == 0
    secured.kctl("acls", "remove", "--all", "--yes")


def test_client_properties_of_a_secure_dev_broker_work_for_java(tmp_path: Path) -> None:
    """Oracle: Kafka's own tool with the file that kctl generated."""
    env = {"KCTL_CONFIG": str(tmp_path / "contexts.yaml")}
    where = ("--dir", str(tmp_path / "state"))
    up = run_kctl("dev", "up", "--secure", "--port", "0", *where, env=env)
    assert up.exit_code == 0, up.stderr
    try:
        config = tmp_path / "state" / "security" / "client.properties"
        assert run_kctl("acls", "add", "topic:orders", "--allow", "alice", env=env).exit_code == 0
        words = ["--bootstrap-server", up.output.strip(), "--command-config", str(config)]
        done = subprocess.run(
            java_command(ACLS, *words, "--list"), capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        ours = run_kctl("acls", "list", "--format", "kafka", env=env).output
        assert done.stdout == ours
        assert "User:alice" in ours
    finally:
        run_kctl("dev", "down", *where, env=env)
