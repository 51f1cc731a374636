"""The error codes in a response, wherever its API puts them; for the metrics."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from broker.protocol.schema import Response, StructMeta

FindErrors = Callable[[Any], Iterator[int]]


def error_codes(response: Response) -> Iterator[int]:
    """Every error code that is not NONE, once for each place where it stands."""
    find = _finder(type(response))
    return iter(()) if find is None else find(response)


@cache
def _finder(cls: StructMeta) -> FindErrors | None:
    """Code that looks only into the fields that can contain an error code; None if none can."""
    has_code = any(field.name == "error_code" for field in cls.fields)
    inner = [
        (field.name, find)
        for field in cls.fields
        if field.is_array
        and isinstance(field.type, StructMeta)
        and (find := _finder(field.type)) is not None
    ]
    if not has_code and not inner:
        return None

    def find_errors(struct: Any) -> Iterator[int]:
        if has_code and struct.error_code:
            yield struct.error_code
        for name, find in inner:
            for element in getattr(struct, name) or ():
                yield from find(element)

    return find_errors
