"""SASL at the beginning of a connection, with a scripted broker."""

import base64
from collections.abc import Generator

import pytest

from broker.errors import ErrorCode
from broker.net.authentication import Sasl, Security
from broker.net.client import Client
from broker.net.failures import SecurityFailed, SecurityProblem
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.security.scram import ScramMechanism, salted_password, scram_client, server_signature
from tests.net.scripted_broker import NEWEST, Script, hang_up, running
from tests.net.support import in_loop

SALT = b"salt of the test"


class ScramBroker:
    """The broker's side of SCRAM-SHA-256 for a user with this password."""

    def __init__(self, password: str) -> None:
        self._salted = salted_password("sha256", password, SALT, 4096)
        self._said: list[str] = []

    def scripts(self) -> dict[ApiKey, Script]:
        return {
            ApiKey.SASL_HANDSHAKE: self.agree,
            ApiKey.SASL_AUTHENTICATE: self.authenticate,
            ApiKey.LIST_GROUPS: lambda _: ListGroupsResponse(),
        }

    def agree(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        offered = ["SCRAM-SHA-256", "GSSAPI"]
        code = 0 if request.mechanism in offered else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=code, mechanisms=offered)

    def authenticate(self, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        text = bytes(request.auth_bytes).decode()
        if text.startswith("n,,"):
            nonce = text.rpartition("r=")[2] + "broker"
            answer = f"r={nonce},s={base64.b64encode(SALT).decode()},i=4096"
            self._said = [text.removeprefix("n,,"), answer]
        else:
            auth_message = ",".join([*self._said, text.partition(",p=")[0]]).encode()
            signature = server_signature("sha256", self._salted, auth_message)
            answer = f"v={base64.b64encode(signature).decode()}"
        return SaslAuthenticateResponse(auth_bytes=answer.encode())


def scram(password: str, mechanism: str = "SCRAM-SHA-256") -> Security:
    def begin() -> Generator[bytes, bytes, None]:
        return scram_client(ScramMechanism.SHA_256, "alice", password)

    return Security(sasl=Sasl(mechanism, begin))


@in_loop
async def test_every_connection_authenticates_first() -> None:
    async with running(ScramBroker("pencil").scripts()) as broker:
        async with Client(broker.address, security=scram("pencil")) as client:
            await client.refresh_metadata()
            await client.send_to(0, ListGroupsRequest())
        assert broker.num_connections == 2
        assert broker.count(ApiKey.SASL_HANDSHAKE) == 2
        assert broker.count(ApiKey.SASL_AUTHENTICATE) == 4
        assert (ApiKey.SASL_HANDSHAKE, 1) in broker.asked  # in version 0 tokens come bare


async def problem_with(scripts: dict[ApiKey, Script], security: Security) -> tuple[object, str]:
    async with (
        running(scripts) as broker,
        Client(broker.address, security=security) as client,
    ):
        with pytest.raises(SecurityFailed) as caught:
            await client.refresh_metadata()
        assert broker.num_connections == 1, "a login that failed must not be tried again"
        assert broker.count(ApiKey.METADATA) == 0
    return caught.value.problem, str(caught.value)


@in_loop
async def test_connection_to_a_broker_that_does_not_know_the_password_fails() -> None:
    problem, text = await problem_with(ScramBroker("other").scripts(), scram("pencil"))
    assert problem is SecurityProblem.BAD_CREDENTIALS
    assert "did not prove" in text


@in_loop
async def test_error_for_a_disabled_mechanism_lists_the_enabled_ones() -> None:
    problem, text = await problem_with(ScramBroker("pencil").scripts(), scram("pencil", "PLAIN"))
    assert problem is SecurityProblem.MECHANISM_NOT_ENABLED
    assert "it offers GSSAPI, SCRAM-SHA-256" in text


@in_loop
async def test_failed_authentication_has_the_message_of_the_broker() -> None:
    refusal = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="not you"
    )
    scripts = ScramBroker("x").scripts() | {ApiKey.SASL_AUTHENTICATE: lambda _: refusal}
    problem, text = await problem_with(scripts, scram("pencil"))
    assert problem is SecurityProblem.BAD_CREDENTIALS
    assert "not you" in text


@in_loop
async def test_plaintext_listener_is_reported_as_having_no_sasl() -> None:
    answer = SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    problem, _ = await problem_with({ApiKey.SASL_HANDSHAKE: lambda _: answer}, scram("pencil"))
    assert problem is SecurityProblem.NO_SASL


@in_loop
async def test_broker_without_sasl_handshake_is_reported_as_having_no_sasl() -> None:
    versions: dict[ApiKey, tuple[int, int]] = {
        api: v for api, v in NEWEST.items() if api is not ApiKey.SASL_HANDSHAKE
    }
    async with (
        running(versions=versions) as broker,
        Client(broker.address, security=scram("pencil")) as client,
    ):
        with pytest.raises(SecurityFailed) as caught:
            await client.refresh_metadata()
    assert caught.value.problem is SecurityProblem.NO_SASL


@in_loop
async def test_error_suggests_sasl_if_the_listener_closes_at_the_first_request() -> None:
    async with running({ApiKey.METADATA: hang_up}) as broker, Client(broker.address) as client:
        with pytest.raises(ConnectionError, match="does the listener require SASL"):
            await client.refresh_metadata()
