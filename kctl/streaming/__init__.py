"""Records in and out of a cluster on librdkafka: what `produce`, `consume` and `perf` are built on.

Only this room imports confluent_kafka, and nothing imports this room before a command runs.
"""
