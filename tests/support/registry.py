"""Schema registries for tests.

`running_apicurio` is the real one: Apicurio Registry from Maven, with its data in Kafka topics, so
it also proves that the broker serves it. Its Confluent-compatible API is the oracle of the
`kafka` tests. `running_registry` is an in-memory registry with the same routes, for the tests that
must run without Maven; the same tests run against both.
"""

import json
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from urllib.request import urlopen

from kctl.java import find_java
from tests.support.processes import ServerProcess, free_port

VERSION = "3.0.9"
CACHE = Path.home() / ".cache" / "apicurio-registry" / VERSION
ARTIFACT = f"io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all"


@contextmanager
def running_apicurio(directory: Path, bootstrap_servers: str) -> Iterator[str]:
    """Start Apicurio on a Kafka; the value is the URL of its Confluent-compatible API."""
    port = free_port()
    options = {
        "quarkus.http.port": port,
        "quarkus.http.host": "127.0.0.1",
        "apicurio.storage.kind": "kafkasql",
        "apicurio.kafkasql.bootstrap.servers": bootstrap_servers,
        "quarkus.management.enabled": "false",
        # Ids on the wire are those of the content, as in Confluent's registry.
        "apicurio.ccompat.legacy-id-mode.enabled": "false",
        "apicurio.rest.deletion.artifact-version.enabled": "true",
        "apicurio.rest.deletion.artifact.enabled": "true",
    }
    command = [
        str(find_java().executable),
        *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"-D{key}={value}" for key, value in options.items()),
        *("-jar", str(_runner())),
    ]
    with ServerProcess(command, directory / "apicurio.log") as server:
        server.wait_for_port(port, timeout_s=120)
        url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
        urlopen(f"{url}/subjects", timeout=60).close()  # noqa: S310 - http
        yield url


def _runner() -> Path:
    """The registry's jar, from the cache or from Maven."""
    runner = CACHE / f"apicurio-registry-app-{VERSION}-runner.jar"
    if not runner.exists():
        # Not transitive: some mirrors lack the parent's pom, which is not needed.
        get = "dependency:get"
        repository = CACHE / "repository"
        repository.mkdir(parents=True, exist_ok=True)
        options = [
            f"-Dartifact={ARTIFACT}",
            "-Dtransitive=false",
            f"-Dmaven.repo.local={repository}",
        ]
        subprocess.run(["mvn", "-q", "-B", get, *options], check=True, cwd=CACHE, timeout=600)
        with tarfile.open(next(repository.rglob("apicurio-registry-app-*.tar.gz"))) as files:
            files.extractall(CACHE, filter="data")
        shutil.rmtree(repository)
    return runner


@dataclass
class RegistryState:
    """Contents of the in-memory registry."""

    schemas: list[dict[str, Any]] = field(default_factory=list)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    """Schema ids of each subject; the version is the position, from 1."""
    deleted: set[tuple[str, int]] = field(default_factory=set)
    levels: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    authorization: str | None = None
    """The header that requests must have."""

    def id_of(self, body: dict[str, Any]) -> int:
        """The id of a schema, which is new if the schema is."""
        known = {"schemaType": "AVRO", "references": []} | body
        wanted = {key: known[key] for key in ("schema", "schemaType", "references")}
        if wanted not in self.schemas:
            self.schemas.append(wanted)
        return self.schemas.index(wanted) + 1

    def live(self, subject: str) -> list[int]:
        """The versions of a subject that are not deleted."""
        versions = range(1, len(self.subjects.get(subject, [])) + 1)
        return [one for one in versions if (subject, one) not in self.deleted]


@dataclass(frozen=True)
class RunningRegistry:
    """A running in-memory registry."""

    url: str
    state: RegistryState


class _NotFound(Exception):
    """Answered with 404."""


class _Handler(BaseHTTPRequestHandler):
    state: RegistryState

    def _serve(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        url = urlsplit(self.path)
        self.state.requests.append(f"{self.command} {self.path}")
        wanted = self.state.authorization
        if wanted and self.headers.get("Authorization") != wanted:
            self._answer(401, {"error_code": 40101, "message": "Unauthorized"})
            return
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        try:
            self._answer(200, self._route(self.command, parts, parse_qs(url.query), body))
        except _NotFound as error:
            self._answer(404, {"error_code": 40401, "message": str(error)})

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    def _route(  # noqa: C901 - one case per route
        self, method: str, parts: list[str], query: dict[str, list[str]], body: dict[str, Any]
    ) -> Any:
        state = self.state
        match method, parts:
            case "GET", ["schemas", "ids", number]:
                if not 0 < int(number) <= len(state.schemas):
                    raise _NotFound(f"Schema {number} not found")
                return state.schemas[int(number) - 1]
            case "GET", ["subjects"]:
                return [name for name in state.subjects if state.live(name) or "deleted" in query]
            case "GET", ["subjects", name, "versions"]:
                return self._known(name, deleted="deleted" in query)
            case "GET", ["subjects", name, "versions", version]:
                return self._version(name, version, deleted="deleted" in query)
            case "POST", ["subjects", name, "versions"]:
                schema_id = state.id_of(body)
                ids = state.subjects.setdefault(name, [])
                if schema_id not in ids:
                    ids.append(schema_id)
                return {"id": schema_id}
            case "POST", ["subjects", name]:
                schema_id = state.id_of(body)
                if schema_id not in state.subjects.get(name, []):
                    raise _NotFound("Schema not found")
                position = state.subjects[name].index(schema_id) + 1
                return {"id": schema_id, "version": position, "subject": name}
            case "DELETE", ["subjects", name]:
                versions = self._known(name)
                state.deleted |= {(name, one) for one in versions}
                return versions
            case "DELETE", ["subjects", name, "versions", version]:
                self._version(name, version)
                state.deleted.add((name, int(version)))
                return int(version)
            case "POST", ["compatibility", "subjects", name, "versions", version]:
                return self._compatible(name, version, body)
            case "GET", ["config"]:
                return {"compatibilityLevel": state.levels.get("", "BACKWARD")}
            case "GET", ["config", name]:
                level = state.levels.get(name) or state.levels.get("", "BACKWARD")
                return {"compatibilityLevel": level}
            case "PUT", ["config", *rest]:
                state.levels[rest[0] if rest else ""] = body["compatibility"]
                return body
        raise _NotFound(f"HTTP 404 Not Found {method} {'/'.join(parts)}")

    def _known(self, name: str, *, deleted: bool = False) -> list[int]:
        every = list(range(1, len(self.state.subjects.get(name, [])) + 1))
        if not (versions := every if deleted else self.state.live(name)):
            raise _NotFound(f"Subject '{name}' not found.")
        return versions

    def _version(self, name: str, version: str, *, deleted: bool = False) -> dict[str, Any]:
        versions = self._known(name, deleted=deleted)
        number = versions[-1] if version == "latest" else int(version)
        if number not in versions:
            raise _NotFound(f"Version {version} not found.")
        schema_id = self.state.subjects[name][number - 1]
        known = self.state.schemas[schema_id - 1]
        return {"subject": name, "version": number, "id": schema_id, **known}

    def _compatible(self, name: str, version: str, body: dict[str, Any]) -> dict[str, Any]:
        """Only one rule: a schema with a field named `bad` is not compatible."""
        self._version(name, version)
        if '"bad"' in body["schema"]:
            return {"is_compatible": False, "messages": ["READER_FIELD_MISSING_DEFAULT: bad"]}
        return {"is_compatible": True}

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing goes to stderr."""


@contextmanager
def running_registry() -> Iterator[RunningRegistry]:
    """Start an in-memory registry on a free port."""
    state = RegistryState()
    handler = type("Handler", (_Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield RunningRegistry(f"http://127.0.0.1:{server.server_port}", state)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
