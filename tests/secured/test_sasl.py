"""SASL on the wire: what is allowed before authentication, failures in Kafka's words, sessions."""

import socket
import time
from random import Random

import pytest

from broker.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from broker.security.oauthbearer import oauthbearer_client, unsecured_token
from broker.security.plain import plain_token
from broker.security.scram import ScramMechanism, scram_client
from tests.secured.conftest import MECHANISMS, SecuredBroker, password_of
from tests.secured.test_tls import owner_of_token
from tests.support.processes import rss_bytes
from tests.support.wire import WireClient, request_frame

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")
METADATA = MetadataRequest(topics=[])
INVALID = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
)


def choose(client: WireClient, mechanism: str, version: int = 1) -> None:
    answer = client.ask(SaslHandshakeRequest(mechanism=mechanism), version)
    assert answer.error_code == 0


def authenticate(client: WireClient, token: bytes, version: int = 2) -> tuple[int, str | None, int]:
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=token), version)
    return answer.error_code, answer.error_message, answer.session_lifetime_ms


def log_in(client: WireClient, user: str = "alice") -> int:
    """Log in with PLAIN; the lifetime of the session."""
    choose(client, "PLAIN")
    code, message, lifetime_ms = authenticate(client, plain_token(user, password_of(user)))
    assert (code, message) == (0, None)
    return lifetime_ms


def test_versions_and_handshake_come_before_authentication(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        assert client.ask(VERSIONS, 3).error_code == 0
        answer = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.mechanisms == MECHANISMS.split(",")
        code, _, lifetime_ms = authenticate(client, plain_token("alice", password_of("alice")))
        assert (code, lifetime_ms) == (0, 0)
        assert client.ask(METADATA, 12).brokers
        assert owner_of_token(client) == "User:alice"


def test_bare_tokens_follow_handshake_v0(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        choose(client, "PLAIN", version=0)
        client.send(plain_token("alice", password_of("alice")))
        assert client.receive() == b""
        assert client.ask(METADATA, 12).brokers


def test_scram_over_bare_tokens(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        choose(client, "SCRAM-SHA-256", version=0)
        exchange = scram_client(ScramMechanism.SHA_256, "bob", password_of("bob"))
        client.send(next(exchange))
        client.send(exchange.send(client.receive() or b""))
        with pytest.raises(StopIteration):  # the broker's signature is right
            exchange.send(client.receive() or b"")
        assert client.ask(METADATA, 12).brokers


@pytest.mark.parametrize("frame", [request_frame(METADATA, 12), b"\x60\x82\1\0", b""])
def test_other_requests_before_authentication_close_the_connection(
    secured: SecuredBroker, frame: bytes
) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        client.send(frame)
        assert client.receive() is None


def test_versions_are_answered_once(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        assert client.ask(VERSIONS, 3).error_code == 0
        client.send(request_frame(VERSIONS, 3))
        assert client.receive() is None


def test_large_request_before_authentication_closes_the_connection(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        client.socket.sendall((100_001).to_bytes(4, "big") + b"\0\x11")
        assert client.receive() is None


def test_unknown_mechanism_is_refused_with_the_enabled_ones(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        began = time.monotonic()
        answer = client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert answer.mechanisms == MECHANISMS.split(",")
        assert time.monotonic() - began >= 0.1  # connection.failed.authentication.delay.ms
        assert client.receive() is None


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (plain_token("alice", "wrong"), "Authentication failed: Invalid username or password"),
        (plain_token("unknown", "wrong"), "Authentication failed: Invalid username or password"),
        (
            plain_token("alice", password_of("alice"), "bob"),
            "Authentication failed: Client requested an authorization id that is different from "
            "username",
        ),
        (plain_token("", ""), f"{INVALID}PLAIN"),
        (b"alice", f"{INVALID}PLAIN"),
        (b"\xff\0\xfe\0\xfd", "Authentication failed: Invalid username or password"),
    ],
)
def test_plain_failure_has_kafkas_message(
    secured: SecuredBroker, token: bytes, message: str
) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        choose(client, "PLAIN")
        code, found, _ = authenticate(client, token)
        assert (code, found) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)
        assert client.receive() is None


@pytest.mark.parametrize("user", ["bob", "unknown"])
def test_scram_failure_does_not_tell_whether_the_user_exists(
    secured: SecuredBroker, user: str
) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        choose(client, "SCRAM-SHA-512")
        exchange = scram_client(ScramMechanism.SHA_512, user, "wrong")
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=next(exchange)), 2)
        if not answer.error_code:
            token = exchange.send(answer.auth_bytes)
            answer = client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == f"{INVALID}SCRAM-SHA-512"
        assert client.receive() is None


def oauth(client: WireClient, token: str) -> tuple[int, str | None, int]:
    choose(client, "OAUTHBEARER")
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=next(oauthbearer_client(token))), 2)
    if answer.auth_bytes:
        return authenticate(client, b"\x01")
    return answer.error_code, answer.error_message, answer.session_lifetime_ms


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({}, '{"status":"invalid_token"}'),
        ({"exp": 1}, '{"status":"invalid_token"}'),
        ({"iat": 9999999999}, '{"status":"invalid_token"}'),
        ({"scope": "other"}, '{"status":"insufficient_scope", "scope":"kafka"}'),
    ],
)
def test_unsecured_token_is_checked(
    secured: SecuredBroker, claims: dict[str, object], message: str
) -> None:
    usual = {"sub": "dave", "scope": "kafka", "exp": time.time() + 60} if claims else {}
    with WireClient(secured.addresses["SASL"]) as client:
        code, found, _ = oauth(client, unsecured_token(usual | claims))
        assert (code, found) == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)


def test_token_limits_the_session(secured: SecuredBroker) -> None:
    claims = {"sub": "dave", "scope": "kafka", "exp": int(time.time()) + 60}
    with WireClient(secured.addresses["SASL"]) as client:
        code, _, lifetime_ms = oauth(client, unsecured_token(claims))
        assert code == 0
        assert 50_000 < lifetime_ms <= 60_000
        assert client.ask(METADATA, 12).brokers


GOOD = {"sub": "frank", "aud": "kafka", "iss": "https://issuer.example", "iat": 0, "exp": 600}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": "another"},
        {"iss": "https://another.example"},
        {"exp": -100},
        {"iat": 500},
        {"sub": ""},
        {"exp": None},
    ],
    ids=str,
)
def test_signed_token_is_checked(secured: SecuredBroker, changes: dict[str, object]) -> None:
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    for name in ("iat", "exp"):
        if isinstance(offset := claims.get(name), int):
            claims[name] = int(time.time()) + offset
    with WireClient(secured.addresses["SIGNED"]) as client:
        code, _, _ = oauth(client, secured.signed_token(**claims))
        assert code == (ErrorCode.SASL_AUTHENTICATION_FAILED if changes else 0)


def test_signed_token_with_another_signature_is_refused(secured: SecuredBroker) -> None:
    now = int(time.time())
    claims = GOOD | {"iat": now, "exp": now + 60}
    head, body, _ = secured.signed_token(**claims).split(".")
    _, _, other = secured.signed_token(**(claims | {"sub": "eve"})).split(".")
    for token in (f"{head}.{body}.{other}", f"{head}.{body}.", unsecured_token(claims)):
        with WireClient(secured.addresses["SIGNED"]) as client:
            assert oauth(client, token)[0] == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_expired_session_is_closed_and_renewed_session_goes_on(secured: SecuredBroker) -> None:
    with (
        WireClient(secured.addresses["BRIEF"]) as idle,
        WireClient(secured.addresses["BRIEF"]) as busy,
    ):
        assert log_in(idle) == 1500
        assert log_in(busy) == 1500
        time.sleep(1.1)
        assert log_in(busy) == 1500
        time.sleep(0.7)
        assert busy.ask(METADATA, 12).brokers
        idle.send(request_frame(METADATA, 12))
        assert idle.receive() is None


def test_reauthentication_keeps_the_principal(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["BRIEF"]) as client:
        log_in(client)
        choose(client, "PLAIN")
        code, message, _ = authenticate(client, plain_token("admin", password_of("admin")))
        assert code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert message == (
            "Cannot change principals during re-authentication from User.alice: User.admin"
        )
        assert client.receive() is None


def test_second_reauthentication_within_a_second_is_refused(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["BRIEF"]) as client:
        log_in(client)
        log_in(client)
        answer = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_handshake_after_authentication_without_sessions_is_illegal(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SASL"]) as client:
        log_in(client)
        answer = client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        code, message, _ = authenticate(client, b"")
        assert code == ErrorCode.ILLEGAL_SASL_STATE
        assert message == "SaslAuthenticate request received after successful authentication"


def test_nonsense_is_closed_without_traceback_and_without_memory(secured: SecuredBroker) -> None:
    random = Random(2)
    starts = [
        b"",
        request_frame(VERSIONS, 3),
        request_frame(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1),
        request_frame(SaslAuthenticateRequest(auth_bytes=b"n,,n=bob,r=abc"), 2),
    ]
    pid = secured.broker.server.process.pid
    for number in range(300):
        if number == 100:
            before = rss_bytes(pid)
        host, port = secured.addresses["SASL"].split(":")
        with socket.create_connection((host, int(port)), 10) as client:
            try:
                for start in starts[: number % 4 + 1]:
                    client.sendall(len(start).to_bytes(4, "big") + start)
                data = bytearray(random.choice(starts) + random.randbytes(20))
                for _ in range(3):
                    data[random.randrange(len(data))] = random.randrange(256)
                client.sendall(len(data).to_bytes(4, "big") + data)
                client.shutdown(socket.SHUT_WR)
                while client.recv(4096):
                    pass
            except OSError:
                continue
    assert rss_bytes(pid) - before < 10 * 2**20
    assert "Traceback" not in secured.broker.output()
    with WireClient(secured.addresses["SASL"]) as client:
        log_in(client)
