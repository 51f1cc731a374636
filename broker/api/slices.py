"""Large requests in slices, so that other connections are served meanwhile.

Everything runs on one event loop. A request with millions of entries is processed in slices of some
milliseconds, between which other requests are handled. Requests of the same connection still wait
for each other, because the connection awaits the response.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from broker.protocol.codec import Slices
from broker.protocol.schema import Struct

SMALL: Final = 500
"""Up to this number of entries a request is handled at once."""

SLICE_S: Final = 0.005
_CHECK_EVERY: Final = 50
"""Entries between two looks at the clock."""
_FREED_AT_ONCE: Final = 1000
_REFERENCES: Final = 3
"""References to a list of a message: by the message, by `free`, and by the call that counts."""

EntryT = TypeVar("EntryT")
ResultT = TypeVar("ResultT")


class Progress(NamedTuple):
    """How far work in slices is."""

    is_done: bool
    result: Any
    """What the work returned; None while it is not done."""


_UNFINISHED: Final = Progress(False, None)


async def let_others_run() -> None:
    """End a slice.

    Collects young objects first. Python starts a collection by the number of allocations minus
    deallocations; a large request creates the entries of its response and frees as many of its own,
    so that number stays small while young objects pile up, and one collection of them all would
    take as long as many slices.
    """
    gc.collect(1)
    await asyncio.sleep(0)


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
                return _UNFINISHED
    except StopIteration as done:
        return Progress(True, done.value)


async def run_in_slices(work: Slices[Any], max_steps: int = sys.maxsize) -> Progress:
    """Run until the work is done or has taken this many steps.

    If the task is cancelled meanwhile, the work still runs to its end: freeing its intermediate
    results at once may take longer than a slice.
    """
    cancelled: asyncio.CancelledError | None = None
    progress = _UNFINISHED
    deadline = time.monotonic() + SLICE_S
    for _ in range(max_steps):
        try:
            next(work)
        except StopIteration as done:
            progress = Progress(True, done.value)
            break
        if time.monotonic() >= deadline:
            try:
                await let_others_run()
            except asyncio.CancelledError as error:
                cancelled = error
            deadline = time.monotonic() + SLICE_S
    if cancelled is not None:
        raise cancelled
    return progress


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
