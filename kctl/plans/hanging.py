"""Hanging transactions: open ones that will never end on their own.

A transaction hangs if a partition has it open for longer than the maximum transaction timeout and
its coordinator does not know it: then no marker will be written, and read_committed consumers wait
at its first offset forever. The coordinator lists every partition that has not received its marker,
so a partition missing from the list will not get one.
"""

from collections.abc import Iterable, Mapping

from kctl.model.transactions import ActiveProducer, Transaction


def overdue(
    producers: Iterable[ActiveProducer], now_ms: int, max_transaction_timeout_ms: int
) -> list[ActiveProducer]:
    """Producers whose transaction has been open for longer than the maximum timeout."""
    return [
        producer
        for producer in producers
        if producer.start_offset is not None
        and now_ms - producer.last_timestamp_ms > max_transaction_timeout_ms
    ]


def hanging(
    candidates: Iterable[ActiveProducer], by_producer_id: Mapping[int, Transaction]
) -> list[ActiveProducer]:
    """Producers whose transaction no coordinator will end."""
    return [
        producer
        for producer in candidates
        if producer.producer_id not in by_producer_id
        or producer.partition not in by_producer_id[producer.producer_id].partitions
    ]
