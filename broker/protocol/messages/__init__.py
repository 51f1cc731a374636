"""Every message of the protocol: one module per API with its request and its response.

The declarations follow Kafka's own, names and order included. Modules are imported on first use: a
command that sends two requests does not pay for seventy.
"""

from functools import cache
from importlib import import_module
from typing import Any

from broker.protocol.api_keys import ApiKey
from broker.protocol.schema import Request, Response


@cache
def request_class(api_key: int) -> type[Request[Any]]:
    """The request of an API; ValueError for a key that is not declared."""
    return _message_class(ApiKey(api_key), "Request")  # type: ignore[no-any-return]


@cache
def response_class(api_key: int) -> type[Response]:
    """The response of an API; ValueError for a key that is not declared."""
    return _message_class(ApiKey(api_key), "Response")  # type: ignore[no-any-return]


def _message_class(api: ApiKey, kind: str) -> Any:
    return getattr(import_module(f"{__name__}.{api.name.lower()}"), api.display_name + kind)
