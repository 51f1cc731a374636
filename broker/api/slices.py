"""Large requests in slices, so that other connections are served meanwhile.

Everything runs on one event loop. A request with millions of entries is processed in slices of some
milliseconds, between which other requests are handled. Requests of the same connection still wait
for each other, because the connection awaits the response.
"""

import sys
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, TypeVar

from broker.protocol.codec import Slices
from broker.protocol.schema import Struct
from broker.tasks import SLICE_S, UNFINISHED, Progress, let_others_run

SMALL: Final = 500
"""Up to this number of entries a request is handled at once."""

_CHECK_EVERY: Final = 50
"""Entries between two looks at the clock."""
_FREED_AT_ONCE: Final = 1000
_REFERENCES: Final = 3
"""References to a list of a message: by the message, by `free`, and by the call that counts."""

EntryT = TypeVar("EntryT")
ResultT = TypeVar("ResultT")


async def in_slices(
    function: Callable[[EntryT], ResultT], entries: Iterable[EntryT]
) -> list[ResultT]:
    """`[function(entry) for entry in entries]`, interrupted every few milliseconds."""
    results: list[ResultT] = []
    remaining = iter(entries)
    deadline = time.monotonic() + SLICE_S
    while some := list(islice(remaining, _CHECK_EVERY)):
        results.extend(map(function, some))
        if time.monotonic() >= deadline:
            await let_others_run()
            deadline = time.monotonic() + SLICE_S
    return results


def run_first_slice(work: Slices[Any]) -> Progress:
    """Run until the work is done or a slice's time is over."""
    deadline = time.monotonic() + SLICE_S
    try:
        while True:
            next(work)
            if time.monotonic() >= deadline:
                return UNFINISHED
    except StopIteration as done:
        return Progress(True, done.value)


def free(message: Struct | None) -> Slices[None]:
    """Free the entries of a message that is not used any more.

    Python frees a list of millions of entries at once, which takes as long as many slices. A list
    that something else refers to as well is left as it is.
    """
    if message is None:
        return
    for field in message.fields:
        entries = getattr(message, field.name, None) if field.is_array else None
        if isinstance(entries, list) and sys.getrefcount(entries) <= _REFERENCES:
            yield from _free_list(entries)


def _free_list(entries: list[Any]) -> Slices[None]:
    while len(entries) > _FREED_AT_ONCE:
        yield from _free_nested(entries[-_FREED_AT_ONCE:])
        del entries[-_FREED_AT_ONCE:]
        yield
    yield from _free_nested(entries)


def _free_nested(entries: list[Any]) -> Slices[None]:
    for entry in entries:
        if isinstance(entry, Struct):
            yield from free(entry)
