"""Which partition of the transaction topic keeps a transactional id."""

from struct import unpack


def partition_for(transactional_id: str, num_partitions: int) -> int:
    """As Kafka computes it: by Java's String.hashCode, without its sign."""
    data = transactional_id.encode("utf-16-le", "surrogatepass")
    value = 0
    for unit in unpack(f"<{len(data) // 2}H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    signed = value - 2**32 if value >= 2**31 else value
    # Java's abs of its smallest int is negative, so Kafka takes 0 for that one.
    return (0 if signed == -(2**31) else abs(signed)) % num_partitions
