"""TLS listeners: which clients are accepted, and that others are not disturbed."""

import resource
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from tests.secured.conftest import SecuredBroker
from tests.support.certificates import Authority
from tests.support.cluster import wait_until
from tests.support.processes import rss_bytes
from tests.support.secured import round_trip
from tests.support.wire import WireClient

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")


class TlsWireClient(WireClient):
    """A WireClient over TLS."""

    def __init__(self, address: str, context: ssl.SSLContext) -> None:
        super().__init__(address)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


def trusting(secured: SecuredBroker, own: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(secured.certificates.trusted))
    if own:
        context.load_cert_chain(own)
    return context


def owner_of_token(client: WireClient) -> str:
    """The name of the client's principal, as the broker sees it."""
    token = client.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=1000), 2)
    assert token.error_code == 0
    return f"{token.principal_type}:{token.principal_name}"


def s_client(secured: SecuredBroker, listener: str, *options: str) -> tuple[int, str]:
    command = ["openssl", "s_client", "-connect", secured.addresses[listener]]
    command += ["-CAfile", str(secured.certificates.trusted), "-verify_return_error", *options]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=30, check=False)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("option", "words"), [("-tls1_3", "TLSv1.3, Cipher is"), ("-tls1_2", "TLSv1.2, Cipher is")]
)
def test_openssl_connects(secured: SecuredBroker, option: str, words: str) -> None:
    status, output = s_client(secured, "SSL", option)
    assert status == 0
    assert words in output
    assert "Verify return code: 0 (ok)" in output


def test_old_protocol_is_refused(secured: SecuredBroker) -> None:
    status, output = s_client(secured, "SSL", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0")
    assert status != 0
    assert "Cipher is (NONE)" in output


def test_fallback_to_an_older_protocol_is_refused(secured: SecuredBroker) -> None:
    """A client that could do better but was made to try TLS 1.2 says so, and is refused."""
    status, output = s_client(secured, "SSL", "-tls1_2", "-fallback_scsv")
    assert status != 0
    assert "inappropriate fallback" in output


def test_client_that_trusts_another_authority_refuses_the_broker(secured: SecuredBroker) -> None:
    context = ssl.create_default_context(cadata=Authority("stranger").certificate)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        TlsWireClient(secured.addresses["SSL"], context)


def test_client_that_expects_another_name_refuses_the_broker(secured: SecuredBroker) -> None:
    host, port = secured.addresses["SSL"].split(":")
    with (
        socket.create_connection((host, int(port)), 10) as plain,
        pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"),
    ):
        trusting(secured).wrap_socket(plain, server_hostname="other.example")


def refused(secured: SecuredBroker, own: Path | None) -> bool:
    """Whether the broker refuses this client; with TLS 1.3 it notices at its first read."""
    try:
        with TlsWireClient(secured.addresses["MTLS"], trusting(secured, own)) as client:
            client.ask(VERSIONS, 3)
    except (ssl.SSLError, ConnectionError, AssertionError):
        return True
    return False


def test_client_certificate_is_required_and_checked(secured: SecuredBroker, tmp_path: Path) -> None:
    expired, stranger = tmp_path / "expired.pem", tmp_path / "stranger.pem"
    expired.write_text(secured.certificates.authority.certificate_for("alice", days=-1).pem)
    stranger.write_text(Authority().certificate_for("alice").pem)
    assert not refused(secured, secured.certificates.client("alice"))
    assert refused(secured, None)
    assert refused(secured, expired)
    assert refused(secured, stranger)
    wait_until(
        lambda: all(
            f"SSL handshake failed: {reason}" in secured.broker.output()
            for reason in ("certificate has expired", "peer did not return a certificate")
        ),
        "the reasons are logged",
    )


@pytest.mark.parametrize(
    ("name", "principal"), [("alice", "User:ALICE"), ("host-7.example", "User:CN=host-7.example")]
)
def test_principal_is_mapped_from_the_certificate(
    secured: SecuredBroker, name: str, principal: str
) -> None:
    context = trusting(secured, secured.certificates.client(name))
    with TlsWireClient(secured.addresses["MTLS"], context) as client:
        assert owner_of_token(client) == principal


def test_plaintext_into_a_tls_port_is_closed(secured: SecuredBroker) -> None:
    with WireClient(secured.addresses["SSL"]) as client:
        client.send(b"\0\x12\0\0\0\0\0\1\0\0")
        client.receive()  # a TLS alert, or nothing
        assert client.receive() is None


def test_tls_into_a_plaintext_port_is_closed(secured: SecuredBroker) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TlsWireClient(secured.addresses["OPEN"], trusting(secured))


@contextmanager
def many_open_files() -> Iterator[None]:
    """Let this process open as many files as its hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_thousand_half_open_handshakes_do_not_disturb_others(secured: SecuredBroker) -> None:
    host, port = secured.addresses["SSL"].split(":")
    context = trusting(secured)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    hello = outgoing.read()
    with ExitStack() as stack:
        stack.enter_context(many_open_files())
        for number in range(1000):
            half = stack.enter_context(socket.create_connection((host, int(port)), 10))
            # A third of them say nothing, a third half a word, a third never answers.
            half.sendall((b"", hello[: len(hello) // 2], hello)[number % 3])
        assert round_trip(secured.client("SSL"), "undisturbed", 50) == 50
    assert round_trip(secured.client("SSL"), "afterwards", 50) == 50


def test_nonsense_is_closed_without_traceback_and_without_memory(secured: SecuredBroker) -> None:
    random = Random(1)
    pid = secured.broker.server.process.pid
    hello = bytes.fromhex("1603010200010001fc0303")

    def attack(rounds: int) -> None:
        host, port = secured.addresses["SSL"].split(":")
        with ExitStack() as stack:
            clients = [
                stack.enter_context(socket.create_connection((host, int(port)), 10))
                for _ in range(rounds)
            ]
            for number, client in enumerate(clients):
                data = random.randbytes(random.randrange(1, 5000))
                with suppress(OSError):
                    client.sendall(hello + data if number % 2 else data)
                    client.shutdown(socket.SHUT_WR)
            for client in clients:
                with suppress(OSError):
                    while client.recv(4096):
                        pass

    for _ in range(2):
        attack(100)
    before = rss_bytes(pid)
    for _ in range(4):
        attack(100)
    assert rss_bytes(pid) - before < 20 * 2**20
    assert "Traceback" not in secured.broker.output()
    assert round_trip(secured.client("SSL"), "after-nonsense", 10) == 10
