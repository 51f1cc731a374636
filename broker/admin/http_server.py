"""The HTTP side of the admin port: a threaded server that answers GET only.

Bearer tokens are compared in constant time. A request that is slow or malformed occupies its own
thread for a limited time; the number of threads is limited too.
"""

import hmac
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 10.0
"""How long a client may take for its request, and for reading the response."""
_MAX_THREADS: Final = 16
_DRAIN_S: Final = 2.0
_DRAIN_BYTES: Final = 1024 * 1024
"""How much of a refused request is read before the connection is closed."""

Query = dict[str, list[str]]


class Answer(NamedTuple):
    """Status, body and its type."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


def json_answer(status: HTTPStatus, document: object) -> Answer:
    """A JSON document."""
    return Answer(status, json.dumps(document).encode() + b"\n", "application/json")


Endpoint = Callable[[Query, str], Answer]
"""Called in a thread with the query and the Accept header."""


@dataclass(frozen=True)
class HttpConfig:
    """Where to listen, and the token that clients need."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    token: str | None = None
    """The bearer token that requests must carry; None: no token is needed."""


class AdminHttpServer(ThreadingHTTPServer):
    """Bound by the constructor (OSError if that fails), serving from `start` to `stop`."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, config: HttpConfig, endpoints: dict[str, Endpoint]) -> None:
        self.endpoints = endpoints
        self.token = config.token
        self._slots = threading.BoundedSemaphore(_MAX_THREADS)
        super().__init__((config.host, config.port), _Handler)
        if config.tls is not None:
            # Handshakes take place at the first read, in the thread of the request.
            self.socket = config.tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self.serve_forever, name="admin", daemon=True)

    @property
    def port(self) -> int:
        """The port that the system chose, if 0 was configured."""
        return int(self.server_address[1])

    def start(self) -> None:
        """Serve from a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Close the port; returns when the thread has ended. Never blocks for a client."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the request; close it if there are too many."""
        if not self._slots.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle the request in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log one line: a client that disconnects early does not deserve a traceback."""
        logger.debug("request on the admin port failed peer=%s", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server_version = "kctl-broker"
    sys_version = ""
    timeout = _TIMEOUT_S
    server: BaseServer
    _is_refused = False

    def do_GET(self) -> None:
        """Answer with an endpoint."""
        server = self.server
        assert isinstance(server, AdminHttpServer)  # noqa: S101  # for the type checker
        url = urlsplit(self.path)
        endpoint = server.endpoints.get(url.path)
        if not self._is_authorized(server.token):
            self._send(Answer(HTTPStatus.UNAUTHORIZED, b"a valid bearer token is required\n"))
        elif endpoint is None:
            known = " ".join(sorted(server.endpoints))
            text = f"not found: {url.path[:100]!r}; available: {known}\n"
            self._send(Answer(HTTPStatus.NOT_FOUND, text.encode()))
        else:
            query = parse_qs(url.query, keep_blank_values=True)
            self._send(self._answer(endpoint, query))

    do_HEAD = do_GET  # noqa: N815  # the name is given

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse the request; part of it may still be unread."""
        self._is_refused = True
        super().send_error(code, message, explain)

    def finish(self) -> None:
        """Send the rest of the response; read the rest of a refused request.

        Closing with unread data resets the connection, and the client may lose the response.
        """
        super().finish()
        if self._is_refused:
            with suppress(OSError):
                self._drain()

    def _drain(self) -> None:
        self.connection.shutdown(socket.SHUT_WR)
        deadline, left = time.monotonic() + _DRAIN_S, _DRAIN_BYTES
        while left > 0 and (remaining_s := deadline - time.monotonic()) > 0:
            self.connection.settimeout(remaining_s)
            if not (read := self.connection.recv(65536)):
                return
            left -= len(read)

    def _answer(self, endpoint: Endpoint, query: Query) -> Answer:
        try:
            return endpoint(query, self.headers.get("Accept", ""))
        except Exception:  # the fence: a scrape must never disturb the broker
            logger.exception("admin port failed path=%s", self.path[:100])
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"internal error; see the log\n")

    def _is_authorized(self, token: str | None) -> bool:
        if token is None:
            return True
        given = self.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {token}".encode())

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name is given
        """Log nothing per request."""
