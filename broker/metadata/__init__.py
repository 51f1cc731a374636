"""The cluster's metadata: Kafka's znodes, behind one small interface of a tree store.

`store` is the interface. It has two implementations: `embedded` (SQLite, for a single broker) and
`zookeeper` (kazoo; its connection thread is the only other thread that calls back into the loop).
`znodes` defines the path and the format of every node.

May use model, errors, clock, config.
"""
