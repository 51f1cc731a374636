"""Every znode Kafka keeps: one object per kind, with its path, `encode` and `decode`.

What `encode` gives is byte for byte what Apache Kafka 3.9 writes (tests/golden/zookeeper has its
samples), the order of the keys included: `json_text` says where that comes from. `decode` reads
older versions too, raises MalformedZnode for what is none, and takes no data (None) where Kafka
creates a node before it has something to say.
"""
