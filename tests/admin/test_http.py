"""Health endpoints, formats, tokens, TLS, and what a client may do wrong."""

import asyncio
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from broker.admin.admin_server import AdminServer
from broker.admin.sources import AdminSources
from broker.config import parse_config
from tests.admin.conftest import admin_url, get, read_openmetrics
from tests.support.broker import RunningBroker, running_broker
from tests.support.certificates import Authority
from tests.support.cluster import wait_until


def test_broker_that_serves_is_live_and_ready(monitored: RunningBroker) -> None:
    url = admin_url(monitored)
    assert get(f"{url}/livez") == (200, "ok\n")
    assert get(f"{url}/readyz") == (200, "ok\n")
    assert get(f"{url}/readyz?strict") == (200, "ok\n")
    assert '"kafka_version": "3.9"' in get(f"{url}/version")[1]


def test_stopped_event_loop_is_not_live(tmp_path: Path) -> None:
    with running_broker(tmp_path, admin_listeners="http://127.0.0.1:0") as broker:
        url = admin_url(broker)
        assert get(f"{url}/livez")[0] == 200
        broker.server.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(TimeoutError):
                urlopen(f"{url}/livez", timeout=1.5)  # noqa: S310
        finally:
            broker.server.process.send_signal(signal.SIGCONT)
        assert get(f"{url}/livez")[0] == 200


def test_blocked_event_loop_is_not_live_and_answers_so() -> None:
    loop, release = asyncio.new_event_loop(), threading.Event()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    sources = AdminSources(run_in_loop=loop.call_soon_threadsafe)
    admin = AdminServer(parse_config({"admin.listeners": "http://127.0.0.1:0"}), sources)
    admin.start()
    try:
        loop.call_soon_threadsafe(release.wait)
        assert get(f"{admin.url}/livez")[0] == 503
        assert get(f"{admin.url}/readyz") == (503, "the broker is not running: starting\n")
        release.set()
        wait_until(lambda: get(f"{admin.url}/livez")[0] == 200, "the loop responds again")
    finally:
        release.set()
        admin.stop()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_openmetrics_is_served_on_request(monitored: RunningBroker) -> None:
    accept = "application/openmetrics-text; version=1.0.0"
    _, text = get(f"{admin_url(monitored)}/metrics", Accept=accept)
    assert text.endswith("# EOF\n")
    names = {family.name for family in read_openmetrics(text)}
    assert {"kafka_server_brokertopicmetrics_bytesin", "process_cpu_seconds"} <= names


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", b"501"),
        ("DELETE /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"501"),
        ("GET " + "/x" * 40_000 + " HTTP/1.1\r\n\r\n", b"414"),
        ("\x16\x03\x01\x02\x00\x01", b""),
        ("nonsense\r\n\r\n", b"400"),
    ],
    ids=["unknown path", "post", "delete", "long path", "tls", "nonsense"],
)
def test_wrong_request_gets_its_error_and_the_port_stays_open(
    monitored: RunningBroker, request_text: str, status: bytes
) -> None:
    url = urlsplit(admin_url(monitored))
    with socket.create_connection((url.hostname, url.port), 15) as client:
        client.sendall(request_text.encode("latin-1"))
        client.shutdown(socket.SHUT_WR)
        assert status in client.recv(1000)
    assert get(f"{admin_url(monitored)}/livez")[0] == 200


def test_error_reaches_a_client_that_still_sends(monitored: RunningBroker) -> None:
    url = urlsplit(admin_url(monitored))
    with socket.create_connection((url.hostname, url.port), 15) as client:
        client.sendall(b"GET " + b"/x" * 40_000)
        assert client.recv(8, socket.MSG_PEEK) == b"HTTP/1.1"  # answered: it would close now
        for _ in range(5):
            client.sendall(b"/x" * 1000)
            time.sleep(0.05)
        client.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: client.recv(1000), b""))
    assert received.startswith(b"HTTP/1.1 414 ")
    assert received.endswith(b"</html>\n")


def test_slow_clients_take_no_more_than_their_threads(monitored: RunningBroker) -> None:
    url = urlsplit(admin_url(monitored))
    slow = [socket.create_connection((url.hostname, url.port), 15) for _ in range(40)]
    try:
        assert monitored.server.process.poll() is None
    finally:
        for client in slow:
            client.close()


def test_token_is_required(tmp_path: Path) -> None:
    with running_broker(
        tmp_path, admin_listeners="http://127.0.0.1:0", admin_bearer_token="s3cret-canary"
    ) as broker:
        url = admin_url(broker)
        assert get(f"{url}/metrics")[0] == 401
        assert get(f"{url}/metrics", Authorization="Bearer wrong")[0] == 401
        assert get(f"{url}/metrics", Authorization="Bearer s3cret-canary")[0] == 200
        assert "s3cret-canary" not in broker.server.log_file.read_text()


def test_https_is_served_with_a_certificate(tmp_path: Path) -> None:
    authority = Authority()
    certificate = tmp_path / "admin.pem"
    certificate.write_text(authority.certificate_for("127.0.0.1").pem)
    with running_broker(
        tmp_path, admin_listeners="https://127.0.0.1:0", admin_tls_certificate=certificate
    ) as broker:
        trust = ssl.create_default_context(cadata=authority.certificate)
        with urlopen(f"{admin_url(broker)}/readyz", context=trust) as response:  # noqa: S310
            assert response.status == 200


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["admin.listeners=ftp://x:1"], "expected http://host:port"),
        (["admin.listeners=http://127.0.0.1:99999"], "expected http://host:port"),
        (["admin.listeners=https://127.0.0.1:0"], "needs admin.tls.certificate"),
        (
            ["admin.listeners=https://127.0.0.1:0", "admin.tls.certificate=/nowhere.pem"],
            "cannot read admin.tls.certificate",
        ),
        (["metrics.dialect=klingon"], "must be one of: jmx, confluent, both"),
    ],
)
def test_wrong_setting_is_one_line(tmp_path: Path, settings: list[str], message: str) -> None:
    result = start_and_fail(tmp_path, *settings)
    assert message in result
    assert "Traceback" not in result


def test_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = start_and_fail(tmp_path, f"admin.listeners=http://127.0.0.1:{port}")
    assert f"cannot listen on http://127.0.0.1:{port}: Address already in use" in result
    assert "Traceback" not in result


def start_and_fail(directory: Path, *settings: str) -> str:
    """The error output of a broker that does not start."""
    own = [f"log.dirs={directory / 'data'}", "listeners=PLAINTEXT://127.0.0.1:0"]
    overrides = [f"--override={setting}" for setting in (*own, *settings)]
    done = subprocess.run(
        [sys.executable, "-m", "broker", *overrides], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    return done.stderr
