"""Delegation tokens: made, renewed, expired and used to log in."""

import time
from base64 import b64encode
from collections.abc import Iterator

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from broker.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from broker.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from broker.security.scram import ScramMechanism, scram_client
from tests.secured.conftest import SecuredBroker
from tests.secured.scram_by_hand import client_final
from tests.secured.test_sasl import choose, log_in
from tests.support.wire import WireClient

DAY_MS = 86_400_000


@pytest.fixture
def alice(secured: SecuredBroker) -> Iterator[WireClient]:
    with WireClient(secured.addresses["SASL"]) as client:
        log_in(client)
        yield client


@pytest.fixture
def admin(secured: SecuredBroker) -> Iterator[WireClient]:
    with WireClient(secured.addresses["SASL"]) as client:
        log_in(client, "admin")
        yield client


def create(
    client: WireClient, *renewers: str, lifetime_ms: int = -1
) -> CreateDelegationTokenResponse:
    return client.ask(
        CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(principal_type="User", principal_name=r) for r in renewers],
            max_lifetime_ms=lifetime_ms,
        ),
        3,
    )


def renew(client: WireClient, hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = client.ask(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def expire(client: WireClient, hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    answer = client.ask(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), 2)
    return answer.error_code, answer.expiry_timestamp_ms


def listed(client: WireClient, *owners: str) -> set[str]:
    wanted = [DescribeDelegationTokenOwner(principal_type="User", principal_name=o) for o in owners]
    answer = client.ask(DescribeDelegationTokenRequest(owners=wanted or None), 3)
    assert answer.error_code == 0
    return {token.token_id for token in answer.tokens}


def token_login(client: WireClient, token_id: str, hmac: bytes) -> tuple[int, int]:
    """Log in by SCRAM as clients do with tokens: error code and lifetime of the session."""
    choose(client, "SCRAM-SHA-256")
    exchange = scram_client(ScramMechanism.SHA_256, token_id, b64encode(hmac).decode())
    # The extension is part of the message that both sides sign.
    first = next(exchange).decode() + ",tokenauth=true"
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=first.encode()), 2)
    if answer.error_code:
        return answer.error_code, 0
    final = client_final(first, answer.auth_bytes.decode(), b64encode(hmac).decode())
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=final), 2)
    return answer.error_code, answer.session_lifetime_ms


def test_token_lives_a_day_and_at_most_a_week(alice: WireClient) -> None:
    token = create(alice)
    assert token.error_code == 0
    assert token.principal_name == token.token_requester_principal_name == "alice"
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY_MS
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 7 * DAY_MS
    assert len(token.hmac) == 64
    brief = create(alice, lifetime_ms=1000)
    assert brief.expiry_timestamp_ms == brief.max_timestamp_ms == brief.issue_timestamp_ms + 1000
    assert {token.token_id, brief.token_id} <= listed(alice)
    assert listed(alice, "unknown") == set()


def test_only_owner_and_renewers_change_a_token(alice: WireClient, admin: WireClient) -> None:
    own, shared = create(alice), create(alice, "admin")
    assert renew(admin, own.hmac) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    assert expire(admin, own.hmac) == (ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1)
    code, expiry_ms = renew(admin, shared.hmac, 2 * DAY_MS)
    assert code == 0
    assert 0 <= expiry_ms - shared.issue_timestamp_ms - 2 * DAY_MS < 60_000
    assert renew(admin, shared.hmac, 100 * DAY_MS) == (0, shared.max_timestamp_ms)
    assert renew(alice, b"unknown") == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)
    assert expire(alice, own.hmac)[0] == 0
    assert expire(alice, own.hmac) == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1)
    assert own.token_id not in listed(alice)


def test_expired_token_cannot_be_renewed_or_used(secured: SecuredBroker, alice: WireClient) -> None:
    token = create(alice, lifetime_ms=1)
    time.sleep(0.01)
    assert renew(alice, token.hmac) == (ErrorCode.DELEGATION_TOKEN_EXPIRED, -1)
    with WireClient(secured.addresses["SASL"]) as client:
        code, _ = token_login(client, token.token_id, token.hmac)
        assert code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_login_with_a_token_is_its_owner_but_gets_no_token(
    secured: SecuredBroker, alice: WireClient
) -> None:
    token = create(alice)
    with WireClient(secured.addresses["SASL"]) as client:
        code, lifetime_ms = token_login(client, token.token_id, token.hmac)
        assert code == 0
        assert DAY_MS - 60_000 < lifetime_ms <= DAY_MS
        refused = create(client)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert refused.principal_name == "alice"
    with WireClient(secured.addresses["SASL"]) as client:
        code, _ = token_login(client, token.token_id, b"wrong")
        assert code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_anonymous_clients_get_no_token(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["OPEN"]) as client:
        assert create(client).error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_renewer_must_be_a_user(alice: WireClient) -> None:
    request = CreateDelegationTokenRequest(
        renewers=[CreatableRenewers(principal_type="Group", principal_name="g")], max_lifetime_ms=-1
    )
    assert alice.ask(request, 3).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
