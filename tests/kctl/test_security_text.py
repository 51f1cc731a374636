"""`--format kafka` of the security commands equals the recorded output of Kafka's tools.

Kafka prints ACLs in an order that differs from run to run: ours is given in the recorded one.
"""

import re
from base64 import b64decode
from datetime import datetime

import pytest

from broker.security.acls import AclOperation, AclPermissionType, PatternType, ResourceType
from kctl.model.acls import Acl, ResourcePattern
from kctl.model.quotas import EntityPart, PartType, QuotaEntry, entity_of
from kctl.model.tokens import DelegationToken
from kctl.model.users import Credential
from kctl.views.kafka_text.acls import addition_text, listing_text
from kctl.views.kafka_text.quotas import (
    credential_lines,
    quota_completion_line,
    quota_lines,
    user_completion_lines,
)
from kctl.views.kafka_text.tokens import change_text, creation_text, description_text
from tests.support.golden_tools import golden_tool

_RESOURCE = re.compile(r"resourceType=(\w+), name=(\S+), patternType=(\w+)")
_ENTRY = re.compile(r"principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)")


def acls_in(text: str) -> list[Acl]:
    """The ACLs in the output of kafka-acls, in its order."""
    found: list[Acl] = []
    for line in text.splitlines():
        if match := _RESOURCE.search(line):
            kind, name, pattern = match.groups()
            resource = ResourcePattern(ResourceType[kind], name, PatternType[pattern])
        elif match := _ENTRY.search(line):
            who, host, operation, permission = match.groups()
            entry = (who, host, AclOperation[operation], AclPermissionType[permission])
            found.append(Acl(resource, *entry))
    return found


@pytest.mark.parametrize("name", ["70-", "71-", "72-", "73-"])
def test_added_acls_are_printed_as_kafka_acls_does(name: str) -> None:
    golden = golden_tool(name).text
    acls = acls_in(golden)
    assert acls
    assert addition_text(acls) == golden


@pytest.mark.parametrize("name", ["74-", "75-"])
def test_listed_acls_are_printed_as_kafka_acls_does(name: str) -> None:
    golden = golden_tool(name).text
    assert listing_text(acls_in(golden)) == golden


def test_acls_of_principals_are_printed_one_after_the_other() -> None:
    golden = golden_tool("76-").text
    assert listing_text(acls_in(golden), ["User:alice", "User:bill"]) == golden


def part(text: str) -> EntityPart:
    kinds = {
        "user-principal": PartType.USER,
        "client-id": PartType.CLIENT,
        "ip": PartType.IP,
    }
    if text.startswith("the default "):
        return EntityPart(kinds[text.removeprefix("the default ")], None)
    kind, _, name = text.partition(" ")
    return EntityPart(kinds[kind], name.strip("'"))


def quotas_in(text: str) -> list[QuotaEntry]:
    found = []
    for line in text.splitlines():
        if match := re.fullmatch(r"Quota configs for (.*) are (.*)", line):
            values = dict(pair.split("=") for pair in match[2].split(", "))
            entity = entity_of(*map(part, match[1].split(", ")))
            found.append(QuotaEntry(entity, {key: float(value) for key, value in values.items()}))
    return found


def credentials_in(text: str) -> list[Credential]:
    return [
        Credential(line.split("'")[1], mechanism, int(iterations))
        for line in text.splitlines()
        if line.startswith("SCRAM")
        for mechanism, iterations in re.findall(r"(SCRAM-SHA-\d+)=iterations=(\d+)", line)
    ]


@pytest.mark.parametrize("name", ["84-", "85-", "86-", "87-", "88-", "89-"])
def test_quotas_and_credentials_are_printed_as_kafka_configs_does(name: str) -> None:
    golden = golden_tool(name).text
    quotas = quotas_in(golden)
    assert quotas
    lines = [*quota_lines(quotas), *credential_lines(credentials_in(golden))]
    assert lines == golden.splitlines()


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("80-", EntityPart(PartType.USER, "alice")),
        ("81-", EntityPart(PartType.CLIENT, "c1")),
        ("82-", EntityPart(PartType.CLIENT, None)),
    ],
)
def test_changed_quota_is_confirmed_as_kafka_configs_does(name: str, changed: EntityPart) -> None:
    assert quota_completion_line(changed) == golden_tool(name).lines[0]


def test_changed_credential_is_confirmed_as_kafka_configs_does() -> None:
    lines = user_completion_lines("alice", through_zookeeper=False)
    assert lines == golden_tool("83-").lines


def milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def token_in(text: str) -> DelegationToken:
    line = next(line for line in text.splitlines() if "==" in line)
    token_id, hmac, owner, requester, *renewers, issued, expiry, last = line.split()
    return DelegationToken(
        token_id,
        b64decode(hmac),
        owner,
        requester,
        tuple(" ".join(renewers).strip("[]").split(", ")),
        *map(milliseconds, (issued, expiry, last)),
    )


def test_tokens_are_printed_as_kafka_delegation_tokens_does() -> None:
    created = golden_tool("90-").text
    token = token_in(created)
    assert creation_text(["User:bob", "User:cat"], 86400000, token) == created
    assert description_text(["User:alice"], [token]) == golden_tool("92-").text
    assert description_text([], []) == golden_tool("91-").text
    for name, verb, period in (("93-", "renew", 3600000), ("94-", "expire", -1)):
        golden = golden_tool(name).text
        expiry = milliseconds(golden.split()[-1])
        assert change_text(verb, token.hmac_text, period, expiry) + "\n" == golden


def test_repr_of_a_token_has_no_hmac() -> None:
    token = token_in(golden_tool("90-").text)
    assert token.hmac_text not in repr(token) and repr(token.hmac) not in repr(token)
