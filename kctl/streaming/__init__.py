"""Records in and out of a cluster on librdkafka: what `produce`, `consume` and `perf` are built on.

Only this room imports confluent_kafka. `choices`, `interrupts`, `measures` and `stopping` do
without it; the other modules are imported by a command when it runs, so that help stays quick.
"""
