"""The error codes in a response, wherever its API puts them; for the metrics.

This runs for every response, and nearly all have no error. So the code is compiled per response
type: nested loops over the arrays that can contain an error code, without a call per element.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from broker.protocol.schema import Response, StructMeta

FindErrors = Callable[[Any], list[int]]


def error_codes(response: Response) -> list[int]:
    """Every error code that is not NONE, once for each place where it stands."""
    return _finder(type(response))(response)


@cache
def _finder(cls: StructMeta) -> FindErrors:
    lines = ["def find(s0):", " found = []", *_loops(cls, 0), " return found"]
    names: dict[str, FindErrors] = {}
    exec("\n".join(lines), names)  # noqa: S102  # names of fields of our own messages
    return names["find"]


def _loops(cls: StructMeta, depth: int) -> list[str]:
    """Lines that add the codes of the struct `s<depth>` and of those inside it."""
    indent, struct = " " * (depth + 1), f"s{depth}"
    lines = []
    if any(field.name == "error_code" for field in cls.fields):
        lines.append(f"{indent}if {struct}.error_code: found.append({struct}.error_code)")
    for field in cls.fields:
        if field.is_array and isinstance(field.type, StructMeta):
            inner = _loops(field.type, depth + 1)
            if inner:
                loop = f"{indent}for s{depth + 1} in {struct}.{field.name} or ():"
                lines += [loop, *inner]
    return lines
