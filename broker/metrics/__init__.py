"""Plain counters that the broker updates as it works; `broker.admin` reads them when it is scraped.

Nothing here knows how metrics are named or exposed. Counters are written by the event loop and
read by another thread: each is a single integer or list, so a reader sees values that are slightly
apart in time, never broken ones.
"""
