"""An https server that serves one document, for tests of what fetches it."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class DocumentServer(ThreadingHTTPServer):
    """Serves `document`, which may be replaced; counts how often in `num_requests`."""

    def __init__(self, certificate: Path, document: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.document = document
        self.num_requests = 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        """Where the document is."""
        return f"https://localhost:{self.server_address[1]}/document"

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that do not trust the certificate."""


class _Handler(BaseHTTPRequestHandler):
    server: DocumentServer

    def do_GET(self) -> None:
        self.server.num_requests += 1
        body = self.server.document.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Print nothing."""


@contextmanager
def serving(certificate: Path, document: str) -> Iterator[DocumentServer]:
    """Serve a document with the certificate and key in a PEM file."""
    with DocumentServer(certificate, document) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
