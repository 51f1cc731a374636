"""Client of a schema registry: Confluent's REST API (also Karapace's and Apicurio's)."""

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPSHandler, OpenerDirector, Request, build_opener

from broker.security.tls import TlsError, client_context
from kctl.cli.errors import CliError, ExitStatus
from kctl.registry.schemas import Reference, Schema, SchemaType, SubjectVersion
from kctl.registry.settings import RegistrySettings

LATEST: Final = "latest"
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MAX_BYTES: Final = 64 << 20
_NOT_FOUND: Final = 404


class RegistryError(CliError):
    """The registry refused a request, or did not answer."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        status: ExitStatus = ExitStatus.FAILED,
        http_status: int | None = None,
    ) -> None:
        super().__init__(message, hint, status)
        self.http_status = http_status

    @property
    def is_not_found(self) -> bool:
        """Whether the subject, version or schema does not exist."""
        return self.http_status == _NOT_FOUND


class RegistryClient:
    """Reads and changes schemas of one registry.

    Schemas by id and references never change, so they are fetched once. Not thread-safe.
    """

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self._by_id: dict[int, Schema] = {}
        self._references: dict[Reference, Schema] = {}
        self._opener: OpenerDirector | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_opener": None}  # an SSL context cannot be pickled

    def schema(self, schema_id: int) -> Schema:
        """The schema with this id; RegistryError if it does not exist."""
        if schema_id not in self._by_id:
            found = self._get(f"/schemas/ids/{schema_id}")
            self._by_id[schema_id] = _schema_in(found, schema_id)
        return self._by_id[schema_id]

    def references_of(self, schema: Schema) -> dict[str, Schema]:
        """All schemas that `schema` imports, directly or not: a schema comes after its imports."""
        found: dict[str, Schema] = {}
        self._collect(schema, found, ())
        return found

    def _collect(
        self, schema: Schema, found: dict[str, Schema], path: tuple[Reference, ...]
    ) -> None:
        for reference in schema.references:
            if reference in path:
                raise RegistryError(f"the schema {reference.name!r} imports itself")
            if reference.name in found:
                continue
            if reference not in self._references:
                version = self.version(reference.subject, reference.version)
                self._references[reference] = version.schema
            imported = self._references[reference]
            self._collect(imported, found, (*path, reference))
            found[reference.name] = imported

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """The names of all subjects; `deleted` adds those that are only marked as deleted."""
        return sorted(map(str, self._get("/subjects" + ("?deleted=true" if deleted else ""))))

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """The versions of a subject, ascending."""
        suffix = "?deleted=true" if deleted else ""
        return sorted(map(int, self._get(f"/subjects/{_quoted(subject)}/versions{suffix}")))

    def version(
        self, subject: str, version: int | str = LATEST, *, deleted: bool = False
    ) -> SubjectVersion:
        """A version of a subject; `deleted` also finds one that is marked as deleted."""
        suffix = "?deleted=true" if deleted else ""
        found = self._get(f"/subjects/{_quoted(subject)}/versions/{version}{suffix}")
        schema = _schema_in(found, int(found["id"]))
        return SubjectVersion(subject, int(found["version"]), schema)

    def register(self, subject: str, schema: Schema) -> Schema:
        """Register `schema`, unless the subject has it already; returns it with its id."""
        found = self._send("POST", f"/subjects/{_quoted(subject)}/versions", _body(schema))
        return Schema(schema.type, schema.text, schema.references, int(found["id"]))

    def find(self, subject: str, schema: Schema) -> SubjectVersion | None:
        """The version of the subject that has this schema; None if it has none."""
        try:
            found = self._send("POST", f"/subjects/{_quoted(subject)}", _body(schema))
        except RegistryError as error:
            if error.is_not_found:
                return None
            raise
        known = Schema(schema.type, schema.text, schema.references, int(found["id"]))
        return SubjectVersion(subject, int(found["version"]), known)

    def incompatibilities(
        self, subject: str, schema: Schema, version: int | str = LATEST
    ) -> list[str] | None:
        """Why `schema` is not compatible with the subject; None if it is compatible.

        Registries that give no reasons return an empty list.
        """
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/{version}?verbose=true"
        found = self._send("POST", path, _body(schema))
        if found.get("is_compatible"):
            return None
        return [str(message) for message in found.get("messages") or []]

    def compatibility(self, subject: str | None = None) -> str:
        """The compatibility level of a subject (its own, or the global one), or the global one."""
        if subject is not None:
            try:
                path = f"/config/{_quoted(subject)}?defaultToGlobal=true"
                return _level_in(self._get(path))
            except RegistryError as error:
                if not error.is_not_found:
                    raise
        return _level_in(self._get("/config"))

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility level of a subject, or the global one."""
        path = "/config" if subject is None else f"/config/{_quoted(subject)}"
        self._send("PUT", path, {"compatibility": level})

    def delete(
        self, subject: str, version: int | None = None, *, permanent: bool = False
    ) -> list[int]:
        """Delete a subject or one version; returns the deleted versions.

        A deleted version is marked only, and its id can still be read, unless `permanent`.
        """
        path = f"/subjects/{_quoted(subject)}"
        path += "" if version is None else f"/versions/{version}"
        found = self._send("DELETE", path + ("?permanent=true" if permanent else ""))
        return sorted(found) if isinstance(found, list) else [int(found)]

    def _get(self, path: str) -> Any:
        return self._send("GET", path)

    def _send(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """The parsed response; addresses that cannot be reached are skipped."""
        failure: RegistryError | None = None
        for address in self.settings.urls:
            try:
                return self._send_to(address, method, path, body)
            except (OSError, HTTPException) as error:
                failure = _unreachable(address, error, self.settings.timeout_s)
        assert failure is not None, "there is at least one address"  # noqa: S101
        raise failure

    def _send_to(
        self, address: str, method: str, path: str, body: Mapping[str, object] | None
    ) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": f"{_MEDIA_TYPE}, application/json"}
        if data is not None:
            headers["Content-Type"] = _MEDIA_TYPE
        if self.settings.authorization:
            headers["Authorization"] = self.settings.authorization
        # The scheme is http or https: RegistrySettings.
        request = Request(address + path, data, headers, method=method)  # noqa: S310
        try:
            with self._connected().open(request, timeout=self.settings.timeout_s) as response:
                return json.loads(response.read(_MAX_BYTES))
        except HTTPError as error:
            with error:
                raise _refused(address, error.code, error.read(_MAX_BYTES)) from None
        except ValueError as error:  # not JSON
            raise RegistryError(
                f"{address} does not respond like a schema registry: {error}", "check the URL"
            ) from None

    def _connected(self) -> OpenerDirector:
        if self._opener is None:
            try:
                tls = client_context(self.settings.tls) if self.settings.tls else None
            except TlsError as error:
                raise CliError(
                    str(error), "check schema.registry.ssl.*", ExitStatus.USAGE
                ) from error
            self._opener = build_opener(*([HTTPSHandler(context=tls)] if tls else []))
        return self._opener


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _body(schema: Schema) -> dict[str, object]:
    body: dict[str, object] = {"schema": schema.text}
    if schema.type is not SchemaType.AVRO:
        body["schemaType"] = schema.type.value
    if schema.references:
        body["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version}
            for one in schema.references
        ]
    return body


def _schema_in(found: Mapping[str, Any], schema_id: int) -> Schema:
    name = found.get("schemaType") or SchemaType.AVRO
    if name not in set(SchemaType):
        known = ", ".join(SchemaType)
        raise RegistryError(f"schema {schema_id} has the type {name}; kctl supports {known}")
    references = tuple(
        Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
        for one in found.get("references") or []
    )
    return Schema(SchemaType(name), str(found["schema"]), references, schema_id)


def _level_in(found: Mapping[str, Any]) -> str:
    return str(found.get("compatibilityLevel") or found.get("compatibility"))


def _refused(address: str, status: int, body: bytes) -> RegistryError:
    try:
        found = json.loads(body)
        reason = str(found.get("message") or found)
    except (ValueError, AttributeError):
        reason = body[:200].decode(errors="replace").strip() or "no reason given"
    if status in (401, 403):
        return RegistryError(
            f"the registry at {address} refuses access (HTTP {status}): {reason}",
            "set basic.auth.user.info or bearer.auth.token in client.properties",
            http_status=status,
        )
    return RegistryError(f"{reason} (HTTP {status})", http_status=status)


def _unreachable(address: str, error: Exception, timeout_s: float) -> RegistryError:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return RegistryError(
            f"the registry at {address} did not answer within {timeout_s:g} s",
            "--timeout SECONDS waits longer",
            ExitStatus.TIMED_OUT,
        )
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return RegistryError(
        f"cannot reach the registry at {address}: {text}", "check the URL, and that it is running"
    )
