"""Clients of a broker without security: they detect its version and get Kafka's errors."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePatternFilter,
)
from kafka.admin import ResourceType as AclResourceType
from kafka.errors import SecurityDisabledError

from broker.errors import ErrorCode

# The annotations of AclBindingFilter forbid the None that its documentation requires.
ANY_ACL = AclBindingFilter(
    ResourceType.ANY,
    None,  # type: ignore[arg-type]
    ResourcePatternType.ANY,
    None,  # type: ignore[arg-type]
    None,  # type: ignore[arg-type]
    AclOperation.ANY,
    AclPermissionType.ANY,
)


@pytest.fixture
def librdkafka(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


@pytest.fixture
def kafka_python(servers: str) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=servers)
    yield admin
    admin.close()


def error_of(future: Future[Any]) -> int:
    with pytest.raises(KafkaException) as caught:
        future.result(20)
    return int(caught.value.args[0].code())


def scram_of(client: AdminClient, user: str) -> Future[UserScramCredentialsDescription]:
    """A request for the credentials of one user."""
    answers = client.describe_user_scram_credentials([user])
    assert isinstance(answers, dict)
    return answers[user]


def test_kafka_python_takes_the_broker_for_3_9(kafka_python: KafkaAdminClient) -> None:
    broker_id = kafka_python.describe_cluster()["controller_id"]
    assert kafka_python.get_broker_version_data(broker_id).broker_version == (3, 9)


def test_kafka_python_gets_security_disabled_for_acls(kafka_python: KafkaAdminClient) -> None:
    every = ACLFilter(
        principal=None,
        host=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
        resource_pattern=ResourcePatternFilter(
            AclResourceType.ANY, None, ACLResourcePatternType.ANY
        ),
    )
    with pytest.raises(SecurityDisabledError, match="No Authorizer is configured on the broker"):
        kafka_python.describe_acls(every)


def test_librdkafka_gets_security_disabled_for_acls(librdkafka: AdminClient) -> None:
    acl = AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    disabled = ErrorCode.SECURITY_DISABLED
    # librdkafka does not look at the error of this response, not even on Apache Kafka.
    assert librdkafka.describe_acls(ANY_ACL).result(20) == []
    (created,) = librdkafka.create_acls([acl]).values()
    assert error_of(created) == disabled
    (deleted,) = librdkafka.delete_acls([ANY_ACL]).values()
    assert error_of(deleted) == disabled


def test_librdkafka_sets_lists_and_deletes_scram_credentials(librdkafka: AdminClient) -> None:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
    set_one = UserScramCredentialUpsertion("lib-alice", info, b"secret", b"salt")
    librdkafka.alter_user_scram_credentials([set_one])["lib-alice"].result(20)
    (found,) = scram_of(librdkafka, "lib-alice").result(20).scram_credential_infos
    assert (found.mechanism, found.iterations) == (ScramMechanism.SCRAM_SHA_512, 8192)
    gone = UserScramCredentialDeletion("lib-alice", ScramMechanism.SCRAM_SHA_512)
    librdkafka.alter_user_scram_credentials([gone])["lib-alice"].result(20)
    assert error_of(scram_of(librdkafka, "lib-alice")) == ErrorCode.RESOURCE_NOT_FOUND
