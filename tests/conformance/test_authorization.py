"""The APIs by permission matrix: each API without each permission responds as Apache Kafka did."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.api.table import TABLE
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.produce import ProduceRequest
from broker.records.builder import BatchSettings
from broker.security.acls import AclOperation, ResourcePattern, ResourceType
from tests.api.requests import produce_request
from tests.conformance.acl_exchanges import CASES as ACL_CASES
from tests.conformance.acl_exchanges import IDS as ACL_IDS
from tests.conformance.authorization_runs import (
    AUTHORIZER,
    CLIENT_HOST,
    OPEN,
    Answers,
    ClientUnderTest,
    allow_administrator,
    grant,
    prepare,
    read_answers,
    revoke,
    run_case,
    state_of,
    talk_of_acls,
)
from tests.conformance.authorization_table import CASES, TOPIC, Case, Known
from tests.conformance.exchange import Exchange
from tests.log.support import batch
from tests.support.broker import running_broker
from tests.support.wire import WireClient

pytestmark = pytest.mark.xdist_group("authorization")  # one broker

TOPIC_PATTERN = ResourcePattern(ResourceType.TOPIC, TOPIC)
_QUICK = {"broker_id": 1, "group_initial_rebalance_delay_ms": 0}


def settings(given: dict[str, str]) -> dict[str, object]:
    return _QUICK | {key.replace(".", "_"): value for key, value in given.items()}


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Known]]:
    """Our broker with an authorizer, and what it has been prepared with."""
    directory: Path = tmp_path_factory.mktemp("ours")
    with running_broker(directory, **settings(OPEN)) as running:
        allow_administrator(running.bootstrap_servers)
    with running_broker(directory, **settings(AUTHORIZER)) as running:
        yield running.bootstrap_servers, prepare(running.bootstrap_servers)
        assert "Traceback" not in running.output()


@pytest.fixture(scope="module")
def recorded() -> Answers:
    """The responses of Apache Kafka."""
    return read_answers()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_denied_request_is_answered_as_by_kafka_and_changes_nothing(
    ours: tuple[str, Known], recorded: Answers, case: Case
) -> None:
    address, known = ours
    before = state_of(address)
    for version, variant, answer in run_case(case, known, address):
        assert answer == recorded[case.name, version, variant], f"v{version} {variant}"
    assert state_of(address) == before


def produced(client: WireClient, request: ProduceRequest) -> int:
    """The error code of the only partition of a produce request."""
    (topic,) = client.ask(request, 9).responses
    code: int = topic.partition_responses[0].error_code
    return code


def test_repeated_produce_is_denied_as_soon_as_its_acl_is_removed(ours: tuple[str, Known]) -> None:
    address, _ = ours
    request = produce_request(TOPIC, batch("x"))
    with WireClient(address) as admin, ClientUnderTest(address) as client:
        assert produced(client, request) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for _ in range(2):
            grant(admin, CLIENT_HOST, [(AclOperation.WRITE, TOPIC_PATTERN)])
            assert [produced(client, request) for _ in range(3)] == [0, 0, 0]
            revoke(admin, CLIENT_HOST)
            assert produced(client, request) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_transactional_batch_needs_its_id_after_plain_ones_were_allowed(
    ours: tuple[str, Known],
) -> None:
    address, _ = ours
    settings = BatchSettings(
        producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    transactional = produce_request(TOPIC, batch("x", settings=settings))
    with WireClient(address) as admin, ClientUnderTest(address) as client:
        grant(admin, CLIENT_HOST, [(AclOperation.WRITE, TOPIC_PATTERN)])
        assert produced(client, produce_request(TOPIC, batch("x"))) == ErrorCode.NONE
        denied = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert produced(client, transactional) == denied
        revoke(admin, CLIENT_HOST)


@pytest.mark.parametrize(("exchange", "version"), ACL_CASES, ids=ACL_IDS)
def test_requests_about_acls_are_answered_as_by_kafka(
    ours: tuple[str, Known], recorded: Answers, exchange: Exchange, version: int
) -> None:
    for key, answer in talk_of_acls(exchange, version, ours[0]).items():
        assert answer == recorded[key], key


def test_every_api_that_needs_a_permission_is_in_the_matrix() -> None:
    tested = {case.api.api_key for case in CASES}
    free = {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.API_VERSIONS,
        ApiKey.ENVELOPE,  # closes the connection
        ApiKey.CREATE_DELEGATION_TOKEN,  # refused on PLAINTEXT, before permissions are checked
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
    assert tested == TABLE.keys() - free
