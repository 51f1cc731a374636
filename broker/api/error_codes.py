"""The error codes in a response, wherever its API puts them; for the metrics.

This runs for every response, and nearly all have no error. So the code is compiled per response
type: nested loops over the arrays that can contain an error code, without a call per element.
"""

from collections.abc import Callable
from typing import Any, Final

from broker.protocol.schema import LATEST, Response, StructMeta


class Finders(dict[Any, Callable[[Any], Any]]):
    """Functions by response type, each compiled when it is first used."""

    def __init__(self, head: str, on_error: str, tail: str) -> None:
        super().__init__()
        self._head, self._on_error, self._tail = head, on_error, tail

    def __missing__(self, cls: Any) -> Callable[[Any], Any]:
        lines = ["def find(s0):", self._head, *_loops(cls, 0, self._on_error), self._tail]
        names: dict[str, Callable[[Any], Any]] = {}
        exec("\n".join(lines), names)  # noqa: S102  # names of fields of our own messages
        self[cls] = names["find"]
        return self[cls]


HAS_ERRORS: Final = Finders(" pass", "return True", " return False")
"""Whether a response contains an error code that is not NONE, by its type."""
_CODES: Final = Finders(" found = []", "found.append({0}.error_code)", " return found")


def error_codes(response: Response) -> list[int]:
    """Every error code that is not NONE, once for each place where it stands."""
    codes: list[int] = _CODES[type(response)](response)
    return codes


def _loops(cls: StructMeta, depth: int, on_error: str) -> list[str]:
    """Lines that visit the codes of the struct `s<depth>` and of those inside it."""
    indent, struct = " " * (depth + 1), f"s{depth}"
    lines = []
    if any(field.name == "error_code" for field in cls.fields):
        lines.append(f"{indent}if {struct}.error_code: {on_error.format(struct)}")
    for field in cls.fields:
        if field.is_array and isinstance(field.type, StructMeta):
            inner = _loops(field.type, depth + 1, on_error)
            if inner:
                array = f"{struct}.{field.name}" + (" or ()" if field.nullable <= LATEST else "")
                loop = f"{indent}for s{depth + 1} in {array}:"
                lines += [loop, *inner]
    return lines
