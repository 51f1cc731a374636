"""Which partition a producer chooses for a record, and why; does not import librdkafka."""

from binascii import crc32

from kctl.model.records import TopicRecord
from kctl.streaming.choices import Partitioner

_SEED = 0x9747B28C
_M = 0x5BD1E995
_WORD = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 (`org.apache.kafka.common.utils.Utils.murmur2`), unsigned."""
    h = (_SEED ^ len(data)) & _WORD
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _WORD
        k ^= k >> 24
        h = (h * _M & _WORD) ^ (k * _M & _WORD)
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * _M & _WORD
    h ^= h >> 13
    h = h * _M & _WORD
    return h ^ (h >> 15)


def explain_partition(
    record: TopicRecord, partitioner: Partitioner, num_partitions: int
) -> tuple[int | None, str]:
    """The partition of a record and the reason; None if the client chooses one freely."""
    if record.partition is not None:
        exists = 0 <= record.partition < num_partitions
        return record.partition, "given" if exists else f"given, but not below {num_partitions}"
    if partitioner is Partitioner.ROUND_ROBIN:
        return None, "round robin"
    if partitioner is Partitioner.RANDOM:
        return None, "random"
    if partitioner is Partitioner.JAVA and record.key is not None:
        number = (murmur2(record.key) & 0x7FFFFFFF) % num_partitions
        return number, f"murmur2(key) mod {num_partitions}"
    if partitioner is Partitioner.LIBRDKAFKA and record.key:
        return crc32(record.key) % num_partitions, f"crc32(key) mod {num_partitions}"
    return None, "no key: any partition, chosen per batch"
