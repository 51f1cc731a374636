"""The cluster's metadata: Kafka's znodes, behind one small tree-store interface.

`store` is the interface, `embedded` (SQLite, one broker) and `zookeeper` (kazoo; the project's only
thread hop) are the two that implement it, `znodes` knows what stands in which node.

May use model, errors, clock.
"""
