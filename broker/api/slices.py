"""Large requests in slices, so that other connections are served meanwhile.

Everything runs on one event loop. A request with millions of entries is processed in slices of some
milliseconds, between which other requests are handled. Requests of the same connection still wait
for each other, because the connection awaits the response.

Deliberately missing: decoding and encoding are not sliced.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

SMALL: Final = 500
"""Up to this number of entries a request is handled at once."""

_SLICE_S: Final = 0.005
_CHECK_EVERY: Final = 50
"""Entries between two looks at the clock."""

EntryT = TypeVar("EntryT")
ResultT = TypeVar("ResultT")


async def in_slices(
    function: Callable[[EntryT], ResultT], entries: Sequence[EntryT]
) -> list[ResultT]:
    """`[function(entry) for entry in entries]`, interrupted every few milliseconds."""
    results: list[ResultT] = []
    deadline = time.monotonic() + _SLICE_S
    for start in range(0, len(entries), _CHECK_EVERY):
        results.extend(map(function, entries[start : start + _CHECK_EVERY]))
        if time.monotonic() >= deadline:
            await asyncio.sleep(0)
            deadline = time.monotonic() + _SLICE_S
    return results
