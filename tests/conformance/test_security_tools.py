"""kafka-acls, kafka-configs and kafka-delegation-tokens print what they print on Apache Kafka.

Both brokers have no security: ACLs and tokens are refused, quotas and credentials are stored.
"""

from collections.abc import Iterator

import pytest

from tests.conformance.tool_steps import run_tool, step, texts_on_both
from tests.support.broker import running_broker
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

ACLS = "kafka.admin.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
ALTER, REMOVE = ("--alter", "--add-config"), ("--alter", "--delete-config")
USER, CLIENT = ("--user", "alice"), ("--client", "c1")
NONE = "/dev/null"

STEPS = [
    step("acls-list", ACLS, "--list"),
    step("acls-add", ACLS, "--add", "--allow-principal=User:a", "--producer", "--topic=ta"),
    step("acls-remove", ACLS, "--remove", "--topic=ta", "--force"),
    step(
        "tokens",
        "org.apache.kafka.tools.DelegationTokenCommand",
        "--describe",
        "--command-config",
        NONE,
    ),
    step("quotas-none", CONFIGS, "--describe", "--entity-type=users"),
    step("quota-user", CONFIGS, *ALTER, "producer_byte_rate=1024", *USER),
    step("quota-percent", CONFIGS, *ALTER, "request_percentage=12.5", *USER),
    step("quota-both", CONFIGS, *ALTER, "consumer_byte_rate=10", *USER, *CLIENT),
    step("quota-default", CONFIGS, *ALTER, "consumer_byte_rate=9", "--client-defaults"),
    step("quota-ip", CONFIGS, *ALTER, "connection_creation_rate=7", "--ip=127.0.0.1"),
    step("quota-fraction", CONFIGS, *ALTER, "producer_byte_rate=1.5", *USER),
    step("quota-unknown", CONFIGS, *ALTER, "bytes_per_second=1", *USER),
    step("scram", CONFIGS, *ALTER, "SCRAM-SHA-256=[iterations=8192,password=secret]", *USER),
    step("describe-user", CONFIGS, "--describe", *USER),
    step("describe-users", CONFIGS, "--describe", "--entity-type=users"),
    step("describe-both", CONFIGS, "--describe", *USER, *CLIENT),
    step("describe-clients", CONFIGS, "--describe", "--entity-type=clients"),
    step("describe-ips", CONFIGS, "--describe", "--entity-type=ips"),
    step("quota-deleted", CONFIGS, *REMOVE, "producer_byte_rate,request_percentage", *USER),
    step("scram-deleted", CONFIGS, *REMOVE, "SCRAM-SHA-256", *USER),
    step("scram-deleted-again", CONFIGS, *REMOVE, "SCRAM-SHA-256", *USER),
    step("quotas-left", CONFIGS, "--describe", "--entity-type=users"),
]


@pytest.fixture(scope="module")
def texts(
    own_kafka: RealKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, tuple[str, str]]]:
    """By step: what was printed on our broker and on Kafka's."""

    def script(address: str) -> list[str]:
        return [run_tool(step.tool, address, *step.args) for step in STEPS]

    with running_broker(tmp_path_factory.mktemp("ours"), broker_id=1) as ours:
        yield texts_on_both(STEPS, script, (ours.bootstrap_servers, own_kafka.brokers[0]))


@pytest.mark.parametrize("step", [step.name for step in STEPS])
def test_text_is_the_one_on_kafka(texts: dict[str, tuple[str, str]], step: str) -> None:
    ours, kafka = texts[step]
    assert ours == kafka
