"""Conversations about security on brokers that have none: ACLs, tokens, SASL, SCRAM, quotas."""

from collections.abc import Iterable
from typing import Any

from broker.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from broker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from broker.protocol.messages.describe_acls import DescribeAclsRequest
from broker.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.conformance.exchange import Exchange, Talk

# --- SASL -----------------------------------------------------------------------------------------


def handshake_after_authentication(prefix: str, version: int) -> Talk:
    for mechanism in ("PLAIN", "SCRAM-SHA-256", ""):
        yield SaslHandshakeRequest(mechanism=mechanism)


def token_after_authentication(prefix: str, version: int) -> Talk:
    yield SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret")


# --- ACLs -----------------------------------------------------------------------------------------

_ANY = 1
_FILTER: dict[str, Any] = {
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": _ANY,
    "permission_type": _ANY,
}


def list_acls_without_authorizer(prefix: str, version: int) -> Talk:
    for resource_type in (_ANY, 2, 7, 99, -1):
        yield DescribeAclsRequest(resource_type_filter=resource_type, **_FILTER)


def create_acls_without_authorizer(prefix: str, version: int) -> Talk:
    acl = AclCreation(
        resource_type=2,
        resource_name="orders",
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    for num_acls in (0, 1, 3):
        yield CreateAclsRequest(creations=[acl] * num_acls)


def delete_acls_without_authorizer(prefix: str, version: int) -> Talk:
    for num_filters in (0, 1, 3):
        acls = [DeleteAclsFilter(resource_type_filter=_ANY, **_FILTER)] * num_filters
        yield DeleteAclsRequest(filters=acls)


# --- delegation tokens ----------------------------------------------------------------------------


def create_token_on_plaintext(prefix: str, version: int) -> Talk:
    yield CreateDelegationTokenRequest(max_lifetime_ms=-1)
    renewer = CreatableRenewers(principal_type="Group", principal_name="x")
    yield CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=0)
    if version >= 3:
        for kind, name in (("User", "bob"), ("User", ""), ("User", None), ("", "x"), (None, "x")):
            yield CreateDelegationTokenRequest(
                owner_principal_type=kind, owner_principal_name=name, max_lifetime_ms=-1
            )


def renew_token_on_plaintext(prefix: str, version: int) -> Talk:
    yield RenewDelegationTokenRequest(hmac=b"unknown", renew_period_ms=1000)


def expire_token_on_plaintext(prefix: str, version: int) -> Talk:
    yield ExpireDelegationTokenRequest(hmac=b"unknown", expiry_time_period_ms=-1)


def list_tokens_on_plaintext(prefix: str, version: int) -> Talk:
    yield DescribeDelegationTokenRequest(owners=None)
    yield DescribeDelegationTokenRequest(owners=[])
    owner = DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")
    yield DescribeDelegationTokenRequest(owners=[owner])


# --- SCRAM credentials ----------------------------------------------------------------------------


def _scram(
    upserted: Iterable[tuple[str, int, int]] = (), deleted: Iterable[tuple[str, int]] = ()
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=n, mechanism=m) for n, m in deleted],
        upsertions=[
            ScramCredentialUpsertion(
                name=name, mechanism=m, iterations=i, salt=b"salt", salted_password=b"p" * 32
            )
            for name, m, i in upserted
        ],
    )


def _users(*names: str) -> DescribeUserScramCredentialsRequest:
    return DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])


def refused_credentials(prefix: str, version: int) -> Talk:
    user = f"{prefix}alice"
    for iterations in (4095, 16385, -1):
        yield _scram([(user, 1, iterations)])
    for mechanism in (0, 3, -1):
        yield _scram([(user, mechanism, 4096)])
        yield _scram([], [(user, mechanism)])
    yield _scram([("", 1, 4096)])
    yield _scram([], [("", 1)])
    yield _scram([(user, 1, 4096), (user, 1, 8192)])
    yield _scram([(user, 1, 4096)], [(user, 1)])
    yield _scram([], [(user, 1)])
    yield _scram([(user, 1, 4096)], [(user, 2)])
    for bad in ([(user, 1, 1), (user, 9, 4096)], [(user, 9, 4096), (user, 1, 1)]):
        yield _scram(bad)
    yield _scram([(user, 1, 1)], [(user, 9)])
    yield _scram()
    yield _users(user)


def credentials_that_change(prefix: str, version: int) -> Talk:
    first, second = f"{prefix}alice", f"{prefix}b /ü<default>"
    yield _scram([(first, 1, 4096), (second, 1, 5000), (second, 2, 16384)])
    yield _users(first, second)
    yield _scram([(first, 2, 8192), (f"{prefix}bad", 1, 1)], [(first, 1), (f"{prefix}none", 1)])
    yield _users(first)
    yield _users(second, first, second, "", f"{prefix}none", "")
    yield DescribeUserScramCredentialsRequest(users=None)
    yield DescribeUserScramCredentialsRequest(users=[])
    yield _scram([], [(first, 2), (second, 1), (second, 2)])
    yield DescribeUserScramCredentialsRequest(users=None)


# --- quotas ---------------------------------------------------------------------------------------

Names = dict[str, str | None]
PRODUCE, PERCENTAGE, CONNECT = (
    "producer_byte_rate",
    "request_percentage",
    "connection_creation_rate",
)


def _entry(entity: Names, quotas: dict[str, float | None]) -> RequestEntryData:
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in quotas.items()
        ],
    )


def _alter(
    entity: Names, quotas: dict[str, float | None], *, validate_only: bool = False
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(entries=[_entry(entity, quotas)], validate_only=validate_only)


def _describe(
    *components: tuple[str, int, str | None], strict: bool = False
) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )


def refused_quotas(prefix: str, version: int) -> Talk:
    user: Names = {"user": f"{prefix}alice"}
    for value in (1000.5, 1e30, -5.0, float("inf")):
        yield _alter(user, {PRODUCE: value})
    for key in ("nonsense", CONNECT, "SCRAM-SHA-256"):
        yield _alter(user, {key: 1.0})
        yield _alter({"client-id": f"{prefix}c"}, {key: 1.0})
    for value in (-1.0, 1.5, 1e12):
        yield _alter({"ip": "10.0.0.1"}, {CONNECT: value})
    yield _alter({"ip": "10.0.0.1"}, {PRODUCE: 1.0})
    yield _alter({"ip": "no.such.host.invalid"}, {CONNECT: 1.0})
    yield _alter({"ip": "10.0.0.1", **user}, {CONNECT: 1.0})
    for kind in ("user", "client-id", "ip"):
        yield _alter({kind: ""}, {PRODUCE: 1.0})
    yield _alter({}, {PRODUCE: 1.0})
    yield _alter({"nonsense": "x"}, {PRODUCE: 1.0})
    good, bad = _entry(user, {PRODUCE: 1.0}), _entry(user, {"nonsense": 1.0})
    yield AlterClientQuotasRequest(entries=[bad, good], validate_only=True)
    yield AlterClientQuotasRequest(entries=[good, bad], validate_only=True)
    yield AlterClientQuotasRequest(entries=[])
    yield _describe(("user", 0, f"{prefix}alice"))


def _filters(user: str, client: str) -> Iterable[list[tuple[str, int, str | None]]]:
    users: list[tuple[str, int, str | None]] = [("user", 0, user), ("user", 1, None)]
    clients: list[tuple[str, int, str | None]] = [("client-id", 0, client), ("client-id", 1, "x")]
    yield []
    for one in (*users, ("user", 2, None), ("user", 0, "none")):
        yield [one]
    for one in (*clients, ("client-id", 2, None)):
        yield [one]
        for other in (*users, ("user", 2, "x")):
            yield [one, other]
    for how, name in ((0, "10.0.0.1"), (1, None), (2, None), (0, "10.9.9.9")):
        yield [("ip", how, name)]


def quotas_that_change(prefix: str, version: int) -> Talk:
    user, client = f"{prefix}alice", f"{prefix}c 1/é*+~"
    everywhere: list[Names] = [
        {"user": user},
        {"client-id": client},
        {"user": user, "client-id": client},
        {"user": None},
        {"client-id": None},
        {"user": None, "client-id": None},
        {"user": f"{prefix}bob", "client-id": client},
    ]
    addresses: list[Names] = [{"ip": "10.0.0.1"}, {"ip": None}]
    for entity in everywhere:
        yield _alter(entity, {PRODUCE: 1000.0000001})
    for entity in addresses:
        yield _alter(entity, {CONNECT: 10.0})
    yield _alter({"user": user}, {PERCENTAGE: 12.5, "consumer_byte_rate": 1e18})
    yield _alter({"user": user}, {PERCENTAGE: 1e10, "controller_mutation_rate": 0.0001})
    yield _alter({"user": user}, {PRODUCE: 7.0}, validate_only=True)
    yield _alter({"user": user}, {PRODUCE: None, "nonsense": None})
    yield _alter({"user": user}, {})
    for strict in (False, True):
        for components in _filters(user, client):
            yield _describe(*components, strict=strict)
    for entity in everywhere:
        yield _alter(entity, dict.fromkeys((PRODUCE, PERCENTAGE, "consumer_byte_rate")))
    for entity in addresses:
        yield _alter(entity, {CONNECT: None})
    yield _describe()
    yield _alter({"user": user}, {"controller_mutation_rate": None})
    yield _alter({"user": f"{prefix}none", "client-id": "none"}, {PRODUCE: None})
    yield _describe()


def refused_filters_of_quotas(prefix: str, version: int) -> Talk:
    yield _describe(("user", 0, None))
    for how in (3, -1):
        yield _describe(("user", how, "a"))
    for kind in ("", "nonsense"):
        yield _describe((kind, 0, "a"))
    for kind in ("user", "client-id", "ip"):
        yield _describe((kind, 2, None), (kind, 2, None))
    for kind in ("user", "client-id"):
        yield _describe(("ip", 2, None), (kind, 2, None))


EXCHANGES = [
    Exchange(SaslHandshakeRequest, handshake_after_authentication),
    Exchange(SaslAuthenticateRequest, token_after_authentication),
    Exchange(DescribeAclsRequest, list_acls_without_authorizer),
    Exchange(CreateAclsRequest, create_acls_without_authorizer),
    Exchange(DeleteAclsRequest, delete_acls_without_authorizer),
    Exchange(CreateDelegationTokenRequest, create_token_on_plaintext),
    Exchange(RenewDelegationTokenRequest, renew_token_on_plaintext),
    Exchange(ExpireDelegationTokenRequest, expire_token_on_plaintext),
    Exchange(DescribeDelegationTokenRequest, list_tokens_on_plaintext),
    Exchange(AlterUserScramCredentialsRequest, refused_credentials),
    Exchange(DescribeUserScramCredentialsRequest, credentials_that_change),
    Exchange(AlterClientQuotasRequest, refused_quotas),
    Exchange(AlterClientQuotasRequest, quotas_that_change),
    Exchange(DescribeClientQuotasRequest, refused_filters_of_quotas),
]
