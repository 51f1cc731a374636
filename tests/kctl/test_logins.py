"""Logins of kctl on our broker, by both of its clients: OAUTHBEARER, delegation tokens, SCRAM."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kctl.cli.security.oauth import unsecured_token
from tests.support.broker import running_broker
from tests.support.kctl import KctlResult, run_kctl
from tests.support.processes import free_port

SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{SECURITY}.plain.PlainLoginModule"
SCRAM = f"{SECURITY}.scram.ScramLoginModule"
OAUTH = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule"


@dataclass(frozen=True)
class Listening:
    """A broker with SASL and an authorizer; everyone on its plaintext listener is a super user."""

    plaintext: str
    sasl: str
    directory: Path

    def root(self, *words: str) -> KctlResult:
        """As a super user."""
        result = run_kctl(*words, "-b", self.plaintext)
        assert result.exit_code == 0, result.stderr
        return result

    def user(
        self, mechanism: str, jaas: str, *words: str, stdin: str = "", **more: str
    ) -> KctlResult:
        """With this login."""
        settings = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        path = self.directory / "client.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return run_kctl(*words, "-b", self.sasl, "--command-config", str(path), stdin=stdin)

    def alice(self, *words: str) -> KctlResult:
        """As alice, by her password."""
        jaas = f'{PLAIN} required username="alice" password="alice-secret";'
        result = self.user("PLAIN", jaas, *words)
        assert result.exit_code == 0, result.stderr
        return result


@pytest.fixture(scope="module")
def listening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    directory = tmp_path_factory.mktemp("logins")
    port = free_port()
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,LOGIN://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.login.plain.sasl.jaas.config": (
            f'{PLAIN} required user_alice="alice-secret";'
        ),
        "listener.name.login.oauthbearer.sasl.jaas.config": f"{OAUTH} required;",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "secret of the tokens",
    }
    with running_broker(directory, **settings) as broker:
        yield Listening(broker.bootstrap_servers, f"127.0.0.1:{port}", directory)


def test_oauth_token_is_a_login_of_both_clients(listening: Listening) -> None:
    listening.root("topics", "create", "oauth")
    listening.root("acls", "add", "topic:oauth", "--allow", "carol")
    jaas = f'{OAUTH} required unsecuredLoginStringClaim_sub="carol";'
    produced = listening.user("OAUTHBEARER", jaas, "produce", "oauth", stdin="one\n")
    assert produced.exit_code == 0, produced.stderr
    consumed = listening.user("OAUTHBEARER", jaas, "consume", "oauth", "--exit")
    assert consumed.output == "one\n", consumed.stderr


def test_oauth_token_of_a_file_is_refused_when_the_broker_finds_it_expired(
    listening: Listening, tmp_path: Path
) -> None:
    claims = {"unsecuredLoginStringClaim_sub": "carol"}
    token = tmp_path / "token"
    token.write_text(unsecured_token(claims, time.time()))
    url = {"sasl_oauthbearer_token_endpoint_url": f"file://{token}"}
    jaas = f"{OAUTH} required;"
    listed = listening.user("OAUTHBEARER", jaas, "topics", "list", **url)
    assert listed.exit_code == 0, listed.stderr
    # Not yet issued for the broker, whose clock has no tolerance; kctl does not look at that.
    token.write_text(unsecured_token(claims, time.time() + 1000))
    refused = listening.user("OAUTHBEARER", jaas, "topics", "list", **url)
    assert refused.exit_code == 1
    assert "refused the login" in refused.stderr


def test_delegation_token_is_a_login_until_it_expires(listening: Listening) -> None:
    token = listening.alice("tokens", "create", "--renewer", "bob", "-o", "json").json
    (listed,) = listening.alice("tokens", "list", "-o", "json").json
    assert listed == token | {"hmac": None}
    (shown,) = listening.alice("tokens", "list", "--show-hmac", "-o", "json").json
    assert shown == token
    jaas = (
        f'{SCRAM} required username="{token["token_id"]}" password="{token["hmac"]}" '
        'tokenauth="true";'
    )
    listening.root("topics", "create", "owned")
    listening.root("acls", "add", "topic:owned", "--allow", "alice")
    by_token = listening.user("SCRAM-SHA-256", jaas, "topics", "list", "-o", "name")
    assert by_token.output == "owned\n", by_token.stderr
    refused = listening.user("SCRAM-SHA-256", jaas, "tokens", "create")
    assert refused.exit_code == 1
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in refused.stderr

    renewed = listening.alice("tokens", "renew", token["token_id"], "--period", "1h")
    assert renewed.output.strip() < token["expiry"]
    expire = ("tokens", "expire", token["token_id"])
    dry = listening.alice(*expire, "--dry-run", "-o", "json")
    assert dry.json == [{"token_id": token["token_id"], "expires": "now"}]
    listening.alice(*expire, "--yes")
    gone = listening.user("SCRAM-SHA-256", jaas, "topics", "list")
    assert "refused the login" in gone.stderr
    assert token["hmac"] not in gone.stderr + refused.stderr


def test_tokens_without_login_are_refused_with_a_remedy(listening: Listening) -> None:
    refused = run_kctl("tokens", "create", "-b", listening.plaintext)
    assert refused.exit_code == 1
    assert "log in with SASL" in refused.stderr


def test_user_set_by_kctl_logs_in_with_both_mechanisms(
    listening: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DORAS_PASSWORD", "it's secret, =\"€")
    both = [word for size in ("256", "512") for word in ("--mechanism", f"SCRAM-SHA-{size}")]
    listening.root("users", "set", "dora", "--password-env", "DORAS_PASSWORD", *both)
    monkeypatch.setenv("KCTL_SASL_PASSWORD", "it's secret, =\"€")
    for size in ("256", "512"):
        jaas = f'{SCRAM} required username="dora";'
        result = listening.user(f"SCRAM-SHA-{size}", jaas, "topics", "list")
        assert result.exit_code == 0, result.stderr
