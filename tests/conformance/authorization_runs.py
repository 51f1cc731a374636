"""Runs the APIs by permission matrix against a broker, ours or Apache Kafka.

Clients of PLAINTEXT listeners are all User:ANONYMOUS, so host ACLs distinguish them: clients on
127.0.0.1 (the brokers and the administrator) may do everything; the client under test connects
from 127.0.0.2 and has only the permissions of the current case.
"""

import json
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from broker.errors import ErrorCode
from broker.model import Uuid
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from broker.protocol.messages.describe_acls import DescribeAclsRequest
from broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from broker.protocol.schema import Request, Response
from broker.security.acls import (
    CLUSTER_NAME,
    SUPPORTED_OPERATIONS,
    AclOperation,
    AclPermissionType,
    ResourcePattern,
    ResourceType,
)
from tests.api.requests import commit, create_topic, produce
from tests.conformance.authorization_table import (
    GROUP,
    OTHER,
    TOPIC,
    TXN,
    Case,
    Grant,
    Known,
)
from tests.conformance.exchange import Exchange, comparable, talk
from tests.support.wire import WireClient, read_response, request_frame

ADMIN_HOST, CLIENT_HOST = "127.0.0.1", "127.0.0.2"
AUTHORIZER = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
OPEN = AUTHORIZER | {"allow.everyone.if.no.acl.found": "true"}
"""Settings of a broker that lets the first ACLs be created."""
FILE = Path(__file__).parent.parent / "golden" / "authorization.jsonl"

Answers = dict[tuple[str, int, str], Any]
"""By case, version and variant; `closed` if the broker closed the connection."""

_ANYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "operation": 1,
    "permission_type": 1,
}
_TRANSACTION_TIMEOUT_MS = 900_000
_PATIENCE_S = 30


class ClientUnderTest(WireClient):
    """A connection from another address than the administrator's."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection(
            (host, int(port)), timeout=20, source_address=(CLIENT_HOST, 0)
        )


def grant(admin: WireClient, host: str, grants: Iterable[Grant], *, deny: bool = False) -> None:
    """Create ACLs for User:ANONYMOUS from a host."""
    kind = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    creations = [
        AclCreation(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            resource_pattern_type=pattern.pattern_type,
            principal="User:ANONYMOUS",
            host=host,
            operation=operation,
            permission_type=kind,
        )
        for operation, pattern in grants
    ]
    if creations:
        for result in admin.ask(CreateAclsRequest(creations=creations), 3).results:
            assert result.error_code == ErrorCode.NONE, result


def revoke(admin: WireClient, host: str) -> None:
    """Delete all ACLs for a host."""
    filters = [DeleteAclsFilter(host_filter=host, **_ANYTHING)]
    (result,) = admin.ask(DeleteAclsRequest(filters=filters), 3).filter_results
    assert result.error_code == ErrorCode.NONE, result


def allow_administrator(address: str) -> None:
    """Let clients of this host do everything, and no others anything."""
    patterns = [
        ResourcePattern(kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else "*")
        for kind in SUPPORTED_OPERATIONS
    ]
    with WireClient(address) as admin:
        grant(admin, ADMIN_HOST, [(AclOperation.ALL, pattern) for pattern in patterns])


def prepare(address: str) -> Known:
    """Create the topics, offsets and transaction that the cases are about."""
    with WireClient(address) as admin:
        deadline = time.monotonic() + _PATIENCE_S
        while not admin.ask(MetadataRequest(topics=[]), 12).brokers:
            assert time.monotonic() < deadline, "the broker is not registered"
            time.sleep(0.05)
        for name in (TOPIC, OTHER):
            create_topic(admin, name)
            assert not produce(admin, name, "a", "b").error_code
        for key_type in (0, 1):
            _until_found(admin, key_type)
        for name in (TOPIC, OTHER):
            assert not commit(admin, GROUP, name, 1, generation_id_or_member_epoch=-1)
        _open_transaction(admin)
        asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)])
        (described,) = admin.ask(asked, 12).topics
        assert described.topic_id != Uuid.ZERO
        return Known(described.topic_id)


def state_of(address: str) -> Any:
    """Everything that the requests of the cases could change, except topics that they create."""
    with WireClient(address) as admin:
        questions: list[tuple[Request[Any], int]] = [
            (MetadataRequest(topics=None), 12),
            (ListOffsetsRequest(replica_id=-1, topics=_ends()), 7),
            (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)]), 8),
            (DescribeGroupsRequest(groups=[GROUP]), 5),
            (DescribeConfigsRequest(resources=_configured()), 4),
            (DescribeClientQuotasRequest(components=[], strict=False), 1),
            (DescribeUserScramCredentialsRequest(users=None), 0),
            (DescribeAclsRequest(host_filter=None, **_ANYTHING), 3),
            (DescribeTransactionsRequest(transactional_ids=[TXN]), 0),
        ]
        state = [comparable(admin.ask(*question), question[1], "m-") for question in questions]
    topics = state[0]["MetadataResponse"]["topics"]
    state[0]["MetadataResponse"]["topics"] = [t for t in topics if "m-new" not in t["name"]]
    return state


def _ends() -> list[ListOffsetsTopic]:
    end, start = (
        [ListOffsetsPartition(partition_index=0, timestamp=timestamp)] for timestamp in (-1, -2)
    )
    return [
        ListOffsetsTopic(name=TOPIC, partitions=end),
        ListOffsetsTopic(name=OTHER, partitions=start),
    ]


def _configured() -> list[DescribeConfigsResource]:
    return [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
        for kind, name, key in ((2, TOPIC, "retention.ms"), (4, "1", "log.cleaner.threads"))
    ]


def _until_found(admin: WireClient, key_type: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    key = TXN if key_type else GROUP
    while admin.ask(FindCoordinatorRequest(key=key, key_type=key_type), 2).error_code:
        assert time.monotonic() < deadline, "there is no coordinator"
        time.sleep(0.05)


def _open_transaction(admin: WireClient) -> None:
    init = InitProducerIdRequest(
        transactional_id=TXN, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
    )
    deadline = time.monotonic() + _PATIENCE_S
    while (producer := admin.ask(init, 4)).error_code:
        assert time.monotonic() < deadline, producer
        time.sleep(0.05)
    topics = [AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in (TOPIC, OTHER)]
    added = admin.ask(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TXN,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics,
        ),
        3,
    )
    for topic in added.results_by_topic_v3_and_below:
        assert [p.partition_error_code for p in topic.results_by_partition] == [0]


def run_case(case: Case, known: Known, address: str) -> Iterator[tuple[int, str, Any]]:
    """Send all versions and variants; gives version, variant and comparable response."""
    with WireClient(address) as admin:
        for version in case.all_versions():
            unique = f"{case.name}-{version}"
            for number, (variant, grants) in enumerate(case.variants(unique)):
                own = f"{unique}-{number}"
                grants = [(op, _renamed(pattern, unique, own)) for op, pattern in grants]
                grant(admin, CLIENT_HOST, grants)
                try:
                    answer = _send(case.build(version, own, known), version, address)
                finally:
                    if grants:
                        revoke(admin, CLIENT_HOST)
                yield version, variant, answer


def _renamed(pattern: ResourcePattern, unique: str, own: str) -> ResourcePattern:
    return pattern._replace(name=pattern.name.replace(unique, own))


def _send(request: Request[Any], version: int, address: str) -> Any:
    with ClientUnderTest(address) as client:
        client.send(request_frame(request, version))
        frame = client.receive()
        if frame is None:
            return "closed"
        return without_differences(read_response(frame, request.api_key, version), version)


_NUMBERS = ("producerId", "transactionStartTimeMs", "transactionTimeoutMs")


def without_differences(answer: Response, version: int) -> Any:
    """A response without what differs from broker to broker."""
    return _masked(comparable(answer, version, "m-"))


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: _masked_field(key, field) for key, field in value.items()}


def _masked_field(key: str, value: Any) -> Any:
    if key in _NUMBERS and isinstance(value, int) and value > 0:
        return f"<{key}>"
    if key == "errorMessage" and isinstance(value, str) and value.endswith("is not authorized."):
        return "<not authorized>"  # Kafka quotes its whole request with addresses
    return _masked(value)


def talk_of_acls(exchange: Exchange, version: int, address: str) -> Answers:
    """A conversation about ACLs, as answers like those of the matrix."""
    answers = talk(exchange, version, address)
    return {
        (exchange.name, version, str(number)): _masked(answer)
        for number, answer in enumerate(answers)
    }


def read_answers() -> Answers:
    """The recorded responses of Apache Kafka."""
    lines = map(json.loads, FILE.read_text().splitlines())
    return {(line["case"], line["version"], line["variant"]): line["answer"] for line in lines}


def write_answers(answers: Answers) -> None:
    """Replace the record."""
    lines = [
        json.dumps(
            {"case": case, "version": version, "variant": variant, "answer": answer},
            separators=(",", ":"),
        )
        for (case, version, variant), answer in answers.items()
    ]
    FILE.write_text("\n".join(lines) + "\n")
