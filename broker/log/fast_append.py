"""The fast path of an append: one batch that needs no change, to a log that needs none either.

Nearly all batches of clients are like that. The fast path evaluates all conditions in one
expression and takes less than half the time of the full path (`append`, `writer`). It gives no
reasons: if a condition does not hold it returns without having changed anything, and the full path
decides, with the reason for a refusal or the work to be done.

What may take the fast path:

 1. The bytes are exactly one batch of format 2 with base offset 0 and a valid crc, whose header is
    consistent (`header_check.read_plain_header`).
 2. The topic's settings require no check of single records, no other codec, no flush
    (`LogConfig.takes_batches_as_they_are`), and the batch is not too large.
 3. The batch has no producer id, or continues its producer's last batch.
 4. The leader epoch is the current one, and the active segment has room.
 5. The records are well-formed and the header's max timestamp is theirs. This comes last, because
    it is the only check that costs more the larger the batch is.

For a batch that takes it, both paths write the same bytes and leave the same state; a property test
(tests/log/test_fast_append.py) checks that. Only rule 5 raises: what it refuses, the full
path would refuse with the same error.
"""

from broker.log.append import stamped
from broker.log.leader_epochs import LeaderEpochs
from broker.log.local_log import LocalLog
from broker.log.producer_state import ProducerState
from broker.log.validator import largest_timestamp
from broker.records.batch import increment_sequence
from broker.records.layout import TRANSACTIONAL_MASK


class FastAppend:
    """Appends to one log. `PartitionLog` holds its lock, and turns OSErrors into a response."""

    __slots__ = ("_leader_epochs", "_local", "_producers")

    def __init__(
        self, local: LocalLog, producers: ProducerState, leader_epochs: LeaderEpochs
    ) -> None:
        self._local = local
        self._producers = producers
        self._leader_epochs = leader_epochs

    def append(
        self, view: memoryview, header: tuple[int, ...], leader_epoch: int, now_ms: int
    ) -> tuple[int, int, int] | None:
        """Write a batch whose header `read_plain_header` gave: (first, last, max timestamp).

        None, and nothing has changed, if rule 2, 3, 4 or 5 says that the full path must decide.
        ApiError if its records are malformed.
        """
        _, _, _, _, _, attributes, delta, base_timestamp, timestamp, *rest = header
        producer_id, epoch, sequence, count = rest
        local, producers, size = self._local, self._producers, len(view)
        first_offset = local.log_end_offset
        last_offset = first_offset + delta
        segment = local.segments.active
        producer = producers.producers.get(producer_id)
        if producer is None:
            is_next = producer_id < 0 and not attributes & TRANSACTIONAL_MASK
        else:
            is_next = producer.is_next(epoch, sequence, attributes)
        if (
            not is_next
            or not local.config.takes_batches_as_they_are
            or size > local.config.max_message_bytes
            or leader_epoch != self._leader_epochs.latest_epoch
            or segment.should_roll(size, timestamp, last_offset, now_ms)
            or largest_timestamp(view, attributes, base_timestamp, count) != timestamp
        ):
            return None
        buffers = stamped(view, first_offset, leader_epoch)
        segment.append(buffers, size, ((size, last_offset, timestamp),))
        producers.map_end_offset = local.log_end_offset = last_offset + 1
        if producer is not None:
            last_sequence = increment_sequence(sequence, delta)
            producer.add_next(last_sequence, last_offset, delta, timestamp)
        return first_offset, last_offset, timestamp
