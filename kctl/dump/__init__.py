"""Log files → table, JSON, Kafka's own text; their check and their repair.

Reads with `broker.records` and `broker.log`, the same readers the broker uses; there is no other
parser here. Opens everything read-only: a broker may be at work on the same files.
"""
