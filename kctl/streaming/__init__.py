"""Producers and consumers on librdkafka, for `produce`, `consume` and `perf`.

Only this package imports confluent_kafka. `choices`, `rates` and `stopping` do not need it; the
other modules are imported when a command runs, so that `--help` stays fast.
"""
