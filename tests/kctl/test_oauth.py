"""OAUTHBEARER: tokens made, read from files and fetched from endpoints; what goes on the wire."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from broker.security.sasl import SaslError
from kctl.cli.errors import CliError
from kctl.cli.security.clients import client_security, librdkafka_properties
from kctl.cli.security.oauth import oauth_client, read_token, unsecured_token
from kctl.cli.security.settings import read_security

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
BASE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}


def no_environment(_: str) -> str | None:
    return None


def claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=="))
    return found


def jaas(**options: str) -> dict[str, str]:
    words = " ".join(f'{name}="{value}"' for name, value in options.items())
    return BASE | {"sasl.jaas.config": f"{MODULE} required {words};"}


def first_message(properties: dict[str, str]) -> str:
    sasl = client_security(read_security(properties, no_environment)).sasl
    assert sasl is not None
    assert sasl.mechanism == "OAUTHBEARER"
    return next(sasl.begin()).decode()


def test_unsecured_login_has_the_claims_of_the_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginListClaim_scope": "|a|b",
        "unsecuredLoginNumberClaim_level": "3",
        "unsecuredLoginLifetimeSeconds": "60",
    }
    token = unsecured_token(options, 1000.0)
    assert token.endswith(".")
    assert claims(token) == {
        "exp": 1060.0,
        "iat": 1000.0,
        "sub": "alice",
        "scope": ["a", "b"],
        "level": 3.0,
    }


def test_first_message_has_the_token_and_the_extensions() -> None:
    properties = jaas(unsecuredLoginStringClaim_sub="alice", unsecuredLoginExtension_traceId="12")
    message = first_message(properties)
    prefix, auth, extension, *end = message.split("\x01")
    assert (prefix, extension, end) == ("n,,", "traceId=12", ["", ""])
    assert claims(auth.removeprefix("auth=Bearer "))["sub"] == "alice"


def test_refused_token_is_acknowledged_and_explained() -> None:
    exchange = oauth_client("t", {})
    next(exchange)
    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(SaslError, match="invalid_token"):
        exchange.send(b"")
    accepted = oauth_client("t", {})
    next(accepted)
    with pytest.raises(StopIteration):
        accepted.send(b"")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "no claim 'sub'"),
        ({"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_x": "y"}, "number"),
        ({"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_exp": "1"}, "exp"),
        ({"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "x"}, "number"),
        ({"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginExtension_auth": "1"}, "extension"),
    ],
)
def test_unusable_options_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(CliError) as caught:
        client_security(read_security(jaas(**options), no_environment))
    assert words in caught.value.message


def test_unknown_login_handler_is_refused() -> None:
    with pytest.raises(CliError, match=r"com\.acme|Handler"):
        handler = {"sasl.login.callback.handler.class": "com.acme.Handler"}
        read_security(jaas() | handler, no_environment)


@pytest.mark.parametrize("text", ["", "a.b", "a.b.c", "a.e30.c"])
def test_token_without_expiry_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(CliError, match="not a JWT"):
        read_token(text)


def test_expired_token_is_refused() -> None:
    with pytest.raises(CliError, match="expired"):
        read_token(unsecured_token({"unsecuredLoginStringClaim_sub": "a"}, time.time() - 4000))


def test_token_in_a_file_is_used(tmp_path: Path) -> None:
    token = unsecured_token({"unsecuredLoginStringClaim_sub": "alice"}, time.time())
    path = tmp_path / "token"
    path.write_text(f"{token}\n")
    properties = jaas() | {"sasl.oauthbearer.token.endpoint.url": f"file://{path}"}
    assert f"auth=Bearer {token}\x01" in first_message(properties)


class Endpoint(BaseHTTPRequestHandler):
    """A token endpoint: first returns each status in `failures`, then issues a token."""

    failures: list[int]
    seen: list[tuple[str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.headers["Authorization"], body))
        if self.failures:
            self._answer(self.failures.pop(), {"error": "invalid_client"})
        else:
            token = unsecured_token({"unsecuredLoginStringClaim_sub": "shop"}, time.time())
            self._answer(200, {"access_token": token})

    def _answer(self, status: int, document: object) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_: object) -> None:
        """Silent."""


@contextmanager
def endpoint(*failures: int) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The URL of a running endpoint, and what it has received."""
    handler = type("Handler", (Endpoint,), {"failures": list(failures), "seen": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/token", handler.seen  # type: ignore[attr-defined]
        finally:
            server.shutdown()
            thread.join()


def from_endpoint(url: str) -> dict[str, str]:
    return jaas(clientId="shop", clientSecret="canary", scope="kafka all") | {
        "sasl.login.callback.handler.class": HANDLER,
        "sasl.oauthbearer.token.endpoint.url": url,
    }


def test_token_of_an_endpoint_is_requested_as_java_does() -> None:
    with endpoint() as (url, seen):
        settings = read_security(from_endpoint(url), no_environment)
        callback: Any = librdkafka_properties(settings)["oauth_cb"]
        token, expires_at, subject, extensions = callback("")
    assert (subject, extensions) == ("shop", {})
    assert expires_at == claims(token)["exp"]
    credentials = base64.b64encode(b"shop:canary").decode()
    assert seen == [(f"Basic {credentials}", "grant_type=client_credentials&scope=kafka+all")]


def test_endpoint_that_fails_for_a_moment_is_tried_again() -> None:
    with endpoint(503, 500) as (url, seen):
        assert "auth=Bearer" in first_message(from_endpoint(url))
    assert len(seen) == 3


def test_endpoint_that_refuses_is_not_tried_again_and_no_secret_is_shown() -> None:
    with endpoint(401) as (url, seen), pytest.raises(CliError) as caught:
        first_message(from_endpoint(url))
    assert len(seen) == 1
    assert "status 401 (invalid_client)" in caught.value.message
    assert "canary" not in f"{caught.value.message} {caught.value.hint}"


def test_endpoint_without_credentials_is_refused() -> None:
    properties = jaas() | {"sasl.oauthbearer.token.endpoint.url": "https://localhost:1/x"}
    with pytest.raises(CliError, match="requires clientId"):
        first_message(properties)
