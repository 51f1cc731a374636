"""Security settings under Java's names: parsed, resolved, refused without leaking secrets."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.security.clients import client_security, librdkafka_properties
from kctl.cli.security.jaas import parse_jaas
from kctl.cli.security.secrets import ask_secret, from_environment, resolve
from kctl.cli.security.settings import Credentials, SecuritySettings, read_security
from tests.support.certificates import Authority
from tests.support.kctl import Kctl
from tests.support.processes import free_port

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": f'{SCRAM} required username="alice" password="open-sesame";',
}


def no_environment(_: str) -> str | None:
    return None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{SCRAM} required username="a" password="b";', {"username": "a", "password": "b"}),
        (f"{SCRAM} required username='a b' password=c ;", {"username": "a b", "password": "c"}),
        (f'{SCRAM} sufficient password="say \\"x\\"=;,";', {"password": 'say "x"=;,'}),
        (f"{SCRAM} required;", {}),
    ],
)
def test_jaas_is_read_with_its_quotes(text: str, options: dict[str, str]) -> None:
    login = parse_jaas(text)
    assert (login.module, login.options) == ("ScramLoginModule", options)


@pytest.mark.parametrize("text", ["secret", f'{SCRAM} required password="secret"', "x secret;"])
def test_jaas_that_cannot_be_read_is_not_quoted(text: str) -> None:
    with pytest.raises(CliError) as caught:
        parse_jaas(text)
    assert "secret" not in f"{caught.value.message} {caught.value.hint}"


def test_default_is_plaintext() -> None:
    assert read_security({"bootstrap.servers": "h:1"}, no_environment) == SecuritySettings()
    assert librdkafka_properties(SecuritySettings()) == {}


def test_login_reaches_librdkafka_under_its_names() -> None:
    found = librdkafka_properties(read_security(LOGIN, no_environment))
    assert found == {
        "security.protocol": "sasl_ssl",
        "ssl.endpoint.identification.algorithm": "https",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "open-sesame",
    }


def test_own_certificate_reaches_librdkafka_with_its_key_apart(tmp_path: Path) -> None:
    authority = Authority()
    own = authority.certificate_for("alice", password="locked")
    store = tmp_path / "own.pem"
    store.write_text(own.pem)
    properties = {
        "security.protocol": "SSL",
        "ssl.truststore.certificates": authority.certificate.replace("\n", "\\n"),
        "ssl.keystore.location": str(store),
    }
    asked = []

    def ask(what: str) -> str:
        asked.append(what)
        return "locked"

    settings = read_security(properties, ask)
    assert asked == ["Password of the private key"]
    assert client_security(settings).tls is not None
    assert librdkafka_properties(settings) == {
        "security.protocol": "ssl",
        "ssl.endpoint.identification.algorithm": "https",
        "ssl.ca.pem": authority.certificate,
        "ssl.certificate.pem": own.certificate,
        "ssl.key.pem": own.key,
        "ssl.key.password": "locked",
    }


def test_missing_password_is_prompted_for() -> None:
    properties = LOGIN | {"sasl.jaas.config": f"{SCRAM} required username=alice;"}
    settings = read_security(properties, lambda what: f"typed for {what}")
    assert isinstance(settings.credentials, Credentials)
    assert settings.credentials.password == "typed for Password of alice"
    assert "typed" not in repr(settings)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"sasl.jaas.config": f"{SCRAM} required username=alice;"},
            "requires the password of alice",
        ),
        ({"sasl.jaas.config": ""}, "requires a user name"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism=GSSAPI"),
        ({"sasl.mechanism": ""}, "sasl.mechanism is missing"),
        ({"sasl.mechanism": "PLAIN"}, "names ScramLoginModule, but sasl.mechanism=PLAIN"),
        ({"security.protocol": "TLS"}, "unknown security.protocol 'TLS'"),
        ({"ssl.cipher.suites": "TLS_X"}, "ssl.cipher.suites"),
        ({"ssl.endpoint.identification.algorithm": "ldap"}, "algorithm 'ldap'"),
        ({"ssl.keystore.key": "open-sesame"}, "ssl.keystore.certificate.chain is missing"),
        ({"ssl.truststore.location": "/no/such/file"}, "cannot read /no/such/file"),
    ],
)
def test_unusable_settings_are_refused_with_a_message(change: dict[str, str], words: str) -> None:
    with pytest.raises(CliError) as caught:
        read_security(LOGIN | change, no_environment)
    assert words in caught.value.message
    assert "open-sesame" not in f"{caught.value.message} {caught.value.hint}"


STORES = Path(__file__).parents[1] / "golden" / "keystores"


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_trust_store_of_java_is_read(name: str) -> None:
    store = {
        "ssl.truststore.location": str(STORES / name),
        "ssl.truststore.password": "storepass",
        "ssl.truststore.type": name.rpartition(".")[2].upper(),
    }
    found = read_security(LOGIN | store, no_environment)
    assert found.tls is not None and found.tls.trusted == (STORES / "own.pem").read_text()


@pytest.mark.parametrize(("name", "key"), [("keytool.jks", "keypass1"), ("keytool.p12", None)])
def test_key_store_of_java_is_usable(name: str, key: str | None) -> None:
    store = {"security.protocol": "SSL", "ssl.keystore.location": str(STORES / name)}
    store |= {"ssl.keystore.password": "storepass"} | ({"ssl.key.password": key} if key else {})
    settings = read_security(store, no_environment)
    assert client_security(settings).tls is not None
    assert "PRIVATE KEY" in str(librdkafka_properties(settings)["ssl.key.pem"])


def test_missing_password_of_a_store_is_asked_for() -> None:
    asked = []

    def answer(what: str) -> str:
        asked.append(what)
        return "storepass"

    path = str(STORES / "keytool.p12")
    read_security({"security.protocol": "SSL", "ssl.keystore.location": path}, answer)
    assert asked == [f"Password of {path}"]


@pytest.mark.parametrize(
    ("store", "data", "words"),
    [
        ("truststore", b"\xfe\xed\xfe\xed", "is damaged"),
        ("keystore", b"\x30\x82", "the password of the store is required"),
        ("keystore", b"hello", "neither PEM, PKCS12 nor JKS"),
    ],
)
def test_unreadable_store_is_refused_by_its_name(
    tmp_path: Path, store: str, data: bytes, words: str
) -> None:
    path = tmp_path / "store.jks"
    path.write_bytes(data)
    with pytest.raises(CliError) as caught:
        read_security(LOGIN | {f"ssl.{store}.location": str(path)}, no_environment)
    assert str(path) in caught.value.message and words in caught.value.message
    assert f"ssl.{store}." in caught.value.hint


def test_wrong_password_of_a_store_is_not_quoted() -> None:
    store = {"ssl.truststore.location": str(STORES / "trust.p12")}
    with pytest.raises(CliError) as caught:
        read_security(LOGIN | store | {"ssl.truststore.password": "canary"}, no_environment)
    assert caught.value.hint == "set ssl.truststore.password"
    assert caught.value.status is ExitStatus.USAGE
    assert "canary" not in caught.value.message


def test_delegation_token_is_recognized_and_refused_for_librdkafka() -> None:
    jaas = f'{SCRAM} required username="id" password="hmac" tokenauth="true";'
    settings = read_security(LOGIN | {"sasl.jaas.config": jaas}, no_environment)
    security = client_security(settings)
    assert security.sasl is not None
    assert next(security.sasl.begin()).endswith(b",tokenauth=true")
    with pytest.raises(CliError, match="delegation tokens"):
        librdkafka_properties(settings)


def test_secrets_come_from_where_references_point(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("kafka=from file\n")
    (tmp_path / "token").write_text("from directory\n")
    properties = {
        "a": "${env:HIDDEN}!",
        "b": f"${{file:{tmp_path}/secrets.properties:kafka}}",
        "c": f"${{directory:{tmp_path}:token}}",
        "d": "$plain {text}",
    }
    found = resolve(properties, {"HIDDEN": "from env"})
    assert found == {
        "a": "from env!",
        "b": "from file",
        "c": "from directory",
        "d": "$plain {text}",
    }


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("${env:NOT_SET}", "NOT_SET"),
        ("${file:/no/such:key}", "/no/such"),
        ("${directory:/no:such}", "/no/such"),
    ],
)
def test_reference_to_nothing_is_named(reference: str, words: str) -> None:
    with pytest.raises(CliError, match=words):
        resolve({"sasl.password": reference}, {})


def test_reference_to_a_key_that_a_file_lacks_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secrets.properties"
    path.write_text("other=1\n")
    with pytest.raises(CliError, match="'kafka'"):
        resolve({"sasl.password": f"${{file:{path}:kafka}}"}, {})


def test_environment_names_settings_and_files_with_their_values(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("open-sesame\n")
    environ = {"KCTL_SASL_USERNAME": "alice", "KCTL_SASL_PASSWORD_FILE": str(path), "OTHER": "x"}
    assert from_environment(environ) == {
        "sasl.username": "alice",
        "sasl.password": "open-sesame",
    }


def test_context_with_secrets_in_its_properties_shows_none(kctl: Kctl, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in LOGIN.items()))
    environ = {"KCTL_CONFIG": str(tmp_path / "config.yaml")}
    shared = ["-b", "nowhere:1", "--command-config", str(properties)]
    assert kctl("context", "set", "prod", *shared, env=environ).exit_code == 0
    for form in ("table", "wide", "json", "yaml"):
        shown = kctl("context", "show", "prod", "-o", form, "-vv", env=environ)
        assert shown.exit_code == 0
        assert "open-sesame" not in shown.output + shown.stderr


def test_no_prompt_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("typed\n"))
    assert ask_secret("Password of alice") is None


def test_password_prompt_does_not_echo() -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "KCTL_SECURITY_PROTOCOL": "SASL_PLAINTEXT"}
    environ |= {"KCTL_SASL_MECHANISM": "PLAIN", "KCTL_SASL_USERNAME": "alice"}
    words = [sys.executable, "-m", "kctl", "cluster", "-b", f"127.0.0.1:{free_port()}"]
    with subprocess.Popen(
        words, env=environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        shown = b""
        while b"Password of alice: " not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, b"open-sesame\n")
        shown += _rest(ours)
    assert process.returncode == 1
    assert b"cannot reach the cluster" in shown
    assert b"open-sesame" not in shown


def _rest(terminal: int) -> bytes:
    """What is still written to a terminal until its other side is closed."""
    found = b""
    try:
        while data := os.read(terminal, 1024):
            found += data
    except OSError:
        pass
    os.close(terminal)
    return found
