"""Client quotas: rates, which quota applies to a client, and how long a client is throttled.

The formulas are Kafka's. Nothing here does I/O: callers pass the time, respond first, and mute the
connection for the time that is returned.
"""
