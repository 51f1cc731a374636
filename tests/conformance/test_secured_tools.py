"""kafka-acls, kafka-configs and kafka-delegation-tokens on secured brokers, ours and Apache Kafka.

Both have a SASL listener, an authorizer and delegation tokens. The tools log in as a super user.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.tool_steps import run_tool, step, texts_on_both
from tests.support.broker import running_broker
from tests.support.processes import free_port
from tests.support.real_kafka import running_kafka
from tests.support.secured import jaas

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

ACLS = "kafka.admin.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
TOPIC, USER = ("--topic", "orders"), ("--user", "bob")
ALICE, DENIED = "--allow-principal=User:alice", "--deny-principal=User:eve"
PREFIXED = ("--resource-pattern-type", "prefixed")
EVERY_HMAC = "<hmac>"
"""In the steps, stands for the HMAC of the token that was created."""
NO_SUCH_TOKEN = "bm8gc3VjaCB0b2tlbg=="  # base64 of these words

STEPS = [
    step("list-none", ACLS, "--list"),
    step("producer", ACLS, "--add", ALICE, "--producer", *TOPIC),
    step("consumer", ACLS, "--add", ALICE, "--consumer", *TOPIC, "--group", "g"),
    step("deny", ACLS, "--add", DENIED, "--operation", "All", "--topic", "ord", *PREFIXED),
    step("host", ACLS, "--add", ALICE, "--allow-host", "10.0.0.1", "--cluster"),
    step("transactional", ACLS, "--add", ALICE, "--producer", *TOPIC, "--transactional-id", "t"),
    step("wrong-operation", ACLS, "--add", ALICE, "--operation", "Write", "--group", "g"),
    step("list", ACLS, "--list"),
    step("list-topic", ACLS, "--list", *TOPIC),
    step("list-match", ACLS, "--list", *TOPIC, "--resource-pattern-type", "match"),
    step("list-principal", ACLS, "--list", "--principal", "User:alice"),
    step("remove", ACLS, "--remove", ALICE, "--operation", "Read", *TOPIC, "--force"),
    step("remove-all", ACLS, "--remove", *TOPIC, "--force"),
    step("remove-match", ACLS, "--remove", "--topic", "ordinal", *PREFIXED, "--force"),
    step("list-left", ACLS, "--list"),
    step("scram", CONFIGS, "--alter", *USER, "--add-config", "SCRAM-SHA-512=[password=b-secret]"),
    step("quota", CONFIGS, "--alter", *USER, "--add-config", "consumer_byte_rate=2048"),
    step("describe", CONFIGS, "--describe", *USER),
    step("tokens-none", TOKENS, "--describe"),
    step(
        "token", TOKENS, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:r"
    ),
    step("token-list", TOKENS, "--describe", "--owner-principal", "User:admin"),
    step("token-renew", TOKENS, "--renew", "--renew-time-period", "-1", "--hmac", EVERY_HMAC),
    step("token-unknown", TOKENS, "--renew", "--renew-time-period", "-1", "--hmac", NO_SUCH_TOKEN),
    step("token-expire", TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", EVERY_HMAC),
    step("token-left", TOKENS, "--describe", "--owner-principal", "User:admin"),
]


def settings() -> dict[str, object]:
    """Of both brokers."""
    users = jaas("PLAIN", username="admin", password="a-secret", user_admin="a-secret")
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": users,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "delegation.token.secret.key": "key",
    }


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, str]]]:
    """By step: what was printed on our broker and on Kafka's."""
    directory = tmp_path_factory.mktemp("tools")
    client = directory / "client.properties"
    login = jaas("PLAIN", username="admin", password="a-secret")
    client.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n"
    )
    own, kafkas = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:0,CLIENTS://127.0.0.1:{own}"
    more = {"more.listeners": f"CLIENTS://127.0.0.1:{kafkas}"}
    for name in ("ours", "kafka"):
        (directory / name).mkdir()
    with (
        running_broker(directory / "ours", broker_id=1, listeners=listeners, **settings()),
        running_kafka(directory / "kafka", settings=settings() | more),
    ):
        addresses = (f"127.0.0.1:{own}", f"127.0.0.1:{kafkas}")
        yield texts_on_both(STEPS, lambda address: run_steps(address, client), addresses)


def run_steps(address: str, client: Path) -> list[str]:
    """What the tools print; the HMAC of the token is used in later steps, and replaced."""
    printed, hmac = [], ""
    for one in STEPS:
        args = [hmac if arg == EVERY_HMAC else arg for arg in one.args]
        text = run_tool(one.tool, address, "--command-config", str(client), *args)
        if one.name == "token" and (found := re.search(r"\S{80,}==", text)):
            hmac = found[0]
        printed.append(_comparable(text))
    return printed


def _comparable(text: str) -> str:
    """Without ids and times; ACLs are printed in the order of a hash table."""
    text = re.sub(r"\b[\w-]{22}(?=\s)", "<id>", text)
    text = re.sub(r"\S{80,}==", "<hmac>", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d", "<time>", text)
    text = re.sub(r" : .*\d\d:\d\d:\d\d.*", " : <time>", text)
    lines = [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]
    return "\n".join(sorted(line for line in lines if line))


@pytest.mark.parametrize("name", [step.name for step in STEPS])
def test_text_is_the_one_on_kafka(texts: dict[str, tuple[str, str]], name: str) -> None:
    ours, kafka = texts[name]
    assert ours == kafka


@pytest.mark.parametrize("name", ["list", "token-list", "token-renew", "token-expire", "describe"])
def test_step_succeeded_on_kafka(texts: dict[str, tuple[str, str]], name: str) -> None:
    """Two equal failures would prove nothing."""
    assert "exit 0" in texts[name][1], texts[name][1]
