"""Every kind of znode that Kafka has: one class each, with its path, `encode` and `decode`.

`encode` gives byte for byte what Apache Kafka 3.9 writes (samples in tests/golden/zookeeper),
including the order of the keys, which `json_text` explains. `decode` reads older versions too and
raises MalformedZnode. It accepts a node without data (None) where Kafka creates the node before it
writes any.
"""
