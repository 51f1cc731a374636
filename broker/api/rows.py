"""Rows of the API table, and the kinds of handlers: when a handler's response is available.

A handler module has two functions: `handle`, and `error_response`, which puts the error of a
handler that failed as a whole into the form of its API. The protocols below are checked by mypy
against the modules, so that a row cannot claim a kind that its handler does not have.
"""

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, NamedTuple, Protocol

from broker.api.context import RequestContext
from broker.errors import ErrorCode
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import request_class
from broker.protocol.schema import Request, Response


class Kind(Enum):
    """What `handle` returns."""

    IMMEDIATE = "the response"
    DEFERRED = "an awaitable of the response"
    EITHER = "the response where nothing has to be waited for, else an awaitable of it"


class Row(NamedTuple):
    """One API."""

    api_key: ApiKey
    request: type[Request[Any]]
    versions: tuple[int, int]
    """The lowest and the highest version that are served and advertised."""
    kind: Kind
    handle: Callable[[Any, RequestContext], Any]
    """Returns what its kind says."""
    error_response: Callable[[Any, ErrorCode], Response]
    """The response to a request whose handler failed as a whole."""


class _Module(Protocol):
    """A handler module, but for `handle`."""

    def error_response(self, request: Any, code: ErrorCode, /) -> Response:
        """The error in the form of the API."""
        ...


class ImmediateModule(_Module, Protocol):
    """A handler that always has its response."""

    def handle(self, request: Any, context: RequestContext, /) -> Response:
        """See `Kind.IMMEDIATE`."""
        ...


class DeferredModule(_Module, Protocol):
    """A handler that always waits: for the metadata store, the controller or other brokers."""

    def handle(self, request: Any, context: RequestContext, /) -> Awaitable[Response]:
        """See `Kind.DEFERRED`."""
        ...


class MaybeDeferredModule(_Module, Protocol):
    """A handler that waits sometimes."""

    def handle(self, request: Any, context: RequestContext, /) -> Response | Awaitable[Response]:
        """See `Kind.EITHER`."""
        ...


class MaybeSilentModule(_Module, Protocol):
    """A handler that waits sometimes, and some of whose requests get no response."""

    def handle(
        self, request: Any, context: RequestContext, /
    ) -> Response | Awaitable[Response | None] | None:
        """See `Kind.EITHER`; None for a request without response (produce with acks=0)."""
        ...


def immediate(api_key: ApiKey, module: ImmediateModule) -> Row:
    """The row of an API whose handler always has its response."""
    return _row(api_key, Kind.IMMEDIATE, module.handle, module.error_response)


def deferred(api_key: ApiKey, module: DeferredModule) -> Row:
    """The row of an API whose handler always waits."""
    return _row(api_key, Kind.DEFERRED, module.handle, module.error_response)


def maybe_deferred(api_key: ApiKey, module: MaybeDeferredModule) -> Row:
    """The row of an API whose handler waits sometimes."""
    return _row(api_key, Kind.EITHER, module.handle, module.error_response)


def maybe_silent(api_key: ApiKey, module: MaybeSilentModule) -> Row:
    """The row of an API some of whose requests get no response."""
    return _row(api_key, Kind.EITHER, module.handle, module.error_response)


def _row(
    api_key: ApiKey,
    kind: Kind,
    handle: Callable[[Any, RequestContext], Any],
    error_response: Callable[[Any, ErrorCode], Response],
) -> Row:
    """Every version that is declared is served."""
    request = request_class(api_key)
    return Row(api_key, request, request.versions, kind, handle, error_response)
