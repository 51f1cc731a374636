"""Idempotence, fencing and transactions, as a partition's log enforces them (KIP-98, KIP-890)."""

from pathlib import Path

import pytest

from broker.clock import ManualClock
from broker.errors import ApiError, ErrorCode
from broker.log.append import AppendOrigin
from broker.log.config import LogConfig, ProducerStateConfig
from broker.log.environment import LogEnvironment
from broker.log.layout import SNAPSHOT
from broker.log.offsets import FetchIsolation
from broker.log.partition_log import PartitionLog
from broker.log.recovery import LoadFrom, load_log
from broker.log.truncation import truncate_to
from broker.records.control import ControlRecordType
from broker.records.layout import MAX_INT32
from tests.log.support import (
    ABORT,
    COMMIT,
    NOW_MS,
    PARTITION,
    UnflushedDisk,
    batch,
    files_of,
    marker,
    open_log,
    produced,
    values_of,
)


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    return open_log(tmp_path / "orders-0")


def end(
    log: PartitionLog,
    kind: ControlRecordType,
    producer_id: int = 7,
    epoch: int = 0,
    coordinator: int = 0,
) -> None:
    """The transaction coordinator ends a producer's transaction."""
    assert kind in (COMMIT, ABORT)
    data = marker(kind, producer_id, epoch, coordinator)
    log.append_as_leader(data, 0, AppendOrigin.COORDINATOR)


def refusal(
    log: PartitionLog, data: bytes, origin: AppendOrigin = AppendOrigin.CLIENT
) -> ErrorCode:
    """The code an append is refused with; the log must not have changed."""
    before = log.log_end_offset
    with pytest.raises(ApiError) as refused:
        log.append_as_leader(data, 0, origin)
    assert log.log_end_offset == before
    return refused.value.code


class TestIdempotence:
    def test_retry_of_one_of_the_last_five_is_answered_with_its_first_offset(
        self, log: PartitionLog
    ) -> None:
        for number in range(6):
            log.append_as_leader(produced(f"{number}a", f"{number}b", sequence=2 * number), 0)
        for number in range(1, 6):
            retry = produced(f"{number}a", f"{number}b", sequence=2 * number)
            info = log.append_as_leader(retry, 0)
            assert (info.first_offset, info.last_offset) == (2 * number, 2 * number + 1)
        assert log.log_end_offset == 12

    def test_retry_older_than_five_batches_is_out_of_order(self, log: PartitionLog) -> None:
        for number in range(6):
            log.append_as_leader(produced("x", sequence=number), 0)
        assert refusal(log, produced("x")) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_gap_in_the_sequence_is_out_of_order(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("a"), 0)
        code = refusal(log, produced("c", sequence=2))
        assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def test_unknown_producer_may_begin_anywhere(self, log: PartitionLog) -> None:
        assert log.append_as_leader(produced("a", sequence=41), 0).first_offset == 0

    def test_sequence_wraps_around_to_zero(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("a", "b", sequence=MAX_INT32 - 1), 0)
        assert log.append_as_leader(produced("c", sequence=0), 0).first_offset == 2

    def test_batch_that_spans_the_wrap_is_recognised_when_sent_again(
        self, log: PartitionLog
    ) -> None:
        spanning = produced("a", "b", "c", sequence=MAX_INT32)
        log.append_as_leader(spanning, 0)
        assert log.append_as_leader(spanning, 0).first_offset == 0
        assert log.append_as_leader(produced("d", sequence=2), 0).first_offset == 3

    def test_new_epoch_must_begin_with_sequence_zero(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("a", "b"), 0)
        code = refusal(log, produced("c", sequence=2, epoch=1))
        assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert log.append_as_leader(produced("c", epoch=1), 0).first_offset == 2

    def test_old_epoch_is_fenced(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("a", epoch=5), 0)
        assert refusal(log, produced("b", sequence=1, epoch=4)) is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_follower_takes_what_its_leader_took(self, log: PartitionLog) -> None:
        log.append_as_follower(produced("a", sequence=9))
        entry = log.producer_state.producers[7]
        assert (entry.last_sequence, entry.last_data_offset) == (9, 0)

    def test_plain_batches_leave_no_producer(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("a"), 0)
        assert log.active_producers == []


class TestExpiry:
    def test_expired_producer_is_removed_and_may_start_again(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = open_log(tmp_path / "orders-0", clock=clock)
        log.append_as_leader(produced("a", "b"), 0)
        clock.advance(24 * 60 * 60 * 1000)
        log.remove_expired_producers()
        assert len(log.active_producers) == 1  # its last record expires a millisecond later
        clock.advance(1)
        log.remove_expired_producers()
        assert log.active_producers == []
        assert log.append_as_leader(produced("c", sequence=17), 0).first_offset == 2

    def test_producer_with_an_ongoing_transaction_never_expires(self, tmp_path: Path) -> None:
        clock = ManualClock(NOW_MS)
        log = open_log(tmp_path / "orders-0", clock=clock)
        log.append_as_leader(produced("a", transactional=True), 0)
        clock.advance(7 * 24 * 60 * 60 * 1000)
        log.remove_expired_producers()
        assert len(log.active_producers) == 1

    def test_expired_producer_in_a_snapshot_is_not_loaded(self, tmp_path: Path) -> None:
        log = open_log(tmp_path / "orders-0")
        log.append_as_leader(produced("a"), 0)
        log.close()
        later = ManualClock(NOW_MS + 48 * 60 * 60 * 1000)
        assert open_log(log.directory, clock=later).active_producers == []


class TestTransactions:
    def test_open_transaction_holds_the_last_stable_offset(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("plain"), 0)
        log.append_as_leader(produced("t1", transactional=True), 0)
        log.append_as_leader(batch("after"), 0)
        log.update_high_watermark(3)
        assert log.last_stable_offset == 1
        found = log.read(0, 1 << 20, FetchIsolation.TXN_COMMITTED)
        assert found.records is not None
        assert len(found.records) == len(batch("plain"))
        assert found.aborted_transactions == []

    def test_marker_frees_the_offset_once_it_is_replicated(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("t1", transactional=True), 0)
        log.update_high_watermark(1)
        end(log, COMMIT)
        assert log.last_stable_offset == 0
        log.update_high_watermark(2)
        assert log.last_stable_offset == 2

    def test_first_of_several_transactions_holds_the_offset(self, log: PartitionLog) -> None:
        for producer_id in (1, 2, 3):
            log.append_as_leader(produced("x", producer_id=producer_id, transactional=True), 0)
        end(log, COMMIT, producer_id=1)
        end(log, COMMIT, producer_id=3)
        log.update_high_watermark(log.log_end_offset)
        assert log.last_stable_offset == 1

    def test_aborted_transactions_come_with_a_committed_read(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("gone", producer_id=1, transactional=True), 0)
        log.append_as_leader(produced("kept", producer_id=2, transactional=True), 0)
        end(log, ABORT, producer_id=1)
        end(log, COMMIT, producer_id=2)
        log.update_high_watermark(log.log_end_offset)
        found = log.read(0, 1 << 20, FetchIsolation.TXN_COMMITTED)
        assert found.aborted_transactions == [(1, 0, 2, 1)]
        assert log.read(0, 1 << 20).aborted_transactions is None

    def test_aborts_of_later_segments_are_found_for_earlier_records(
        self, log: PartitionLog
    ) -> None:
        log.append_as_leader(produced("gone", producer_id=1, transactional=True), 0)
        log.roll()
        log.append_as_leader(batch("plain"), 0)
        log.roll()
        end(log, ABORT, producer_id=1)
        log.update_high_watermark(log.log_end_offset)
        found = log.read(0, 1, FetchIsolation.TXN_COMMITTED, min_one_message=True)
        assert found.aborted_transactions == [(1, 0, 2, 3)]

    def test_plain_batch_inside_of_a_transaction_is_refused(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("t", transactional=True), 0)
        assert refusal(log, produced("p", sequence=1)) is ErrorCode.INVALID_TXN_STATE

    def test_marker_of_an_old_coordinator_is_fenced(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("t", transactional=True), 0)
        end(log, COMMIT, coordinator=5)
        code = refusal(log, marker(COMMIT, coordinator_epoch=4), AppendOrigin.COORDINATOR)
        assert code is ErrorCode.TRANSACTION_COORDINATOR_FENCED

    def test_marker_of_an_old_producer_epoch_is_fenced(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("t", epoch=3, transactional=True), 0)
        code = refusal(log, marker(ABORT, epoch=2), AppendOrigin.COORDINATOR)
        assert code is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_marker_with_a_higher_epoch_fences_the_producer(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("t", transactional=True), 0)
        end(log, ABORT, epoch=1)
        code = refusal(log, produced("z", sequence=1, transactional=True))
        assert code is ErrorCode.INVALID_PRODUCER_EPOCH

    def test_open_transaction_survives_a_restart(self, log: PartitionLog) -> None:
        log.append_as_leader(batch("plain"), 0)
        log.append_as_leader(produced("t", transactional=True), 0)
        log.close()
        for load_from in (LoadFrom(), LoadFrom(is_clean=False)):
            reopened = open_log(log.directory, load_from=load_from)
            reopened.update_high_watermark(2)
            assert reopened.last_stable_offset == 1

    def test_truncation_takes_back_a_marker(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("t", transactional=True), 0)
        end(log, ABORT)
        log.update_high_watermark(2)
        truncate_to(log, 1)
        assert log.last_stable_offset == 0
        assert log.collect_aborted_txns(0, 10) == []


class TestVerification:
    def verifying(self, directory: Path) -> PartitionLog:
        directory.mkdir()
        state = ProducerStateConfig(verify_transactions=True)
        environment = LogEnvironment(UnflushedDisk(), ManualClock(NOW_MS), state)
        return load_log(directory, PARTITION, LogConfig(), environment)

    def test_unverified_transaction_is_refused(self, tmp_path: Path) -> None:
        log = self.verifying(tmp_path / "orders-0")
        assert refusal(log, produced("t", transactional=True)) is ErrorCode.INVALID_TXN_STATE

    def test_verified_transaction_starts_and_needs_no_second_guard(self, tmp_path: Path) -> None:
        log = self.verifying(tmp_path / "orders-0")
        guard = log.start_verification(7, 0, 0)
        assert guard is not None
        log.append_as_leader(produced("t", transactional=True), 0, verification=guard)
        assert log.start_verification(7, 1, 0) is None
        log.append_as_leader(produced("u", sequence=1, transactional=True), 0)
        assert log.log_end_offset == 2

    def test_guard_of_another_attempt_does_not_count(self, tmp_path: Path) -> None:
        log = self.verifying(tmp_path / "orders-0")
        old = log.start_verification(7, 0, 0)
        log.append_as_leader(produced("t", transactional=True), 0, verification=old)
        end(log, ABORT)
        with pytest.raises(ApiError):
            log.append_as_leader(produced("u", sequence=1, transactional=True), 0, verification=old)

    def test_later_sequence_may_not_overtake_the_verified_one(self, tmp_path: Path) -> None:
        log = self.verifying(tmp_path / "orders-0")
        guard = log.start_verification(7, 3, 0)
        assert log.start_verification(7, 0, 0) is guard
        with pytest.raises(ApiError) as refused:
            log.append_as_leader(
                produced("t", sequence=3, transactional=True), 0, verification=guard
            )
        assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class TestSnapshots:
    def test_snapshot_is_taken_with_every_roll_and_on_close(self, log: PartitionLog) -> None:
        for number in range(3):
            log.append_as_leader(produced("x", sequence=number), 0)
            log.roll()
        log.append_as_leader(produced("x", sequence=3), 0)
        log.close()
        names = [f"{offset:020d}.snapshot" for offset in (1, 2, 3, 4)]
        assert sorted(files_of(log.directory, SNAPSHOT)) == names

    def test_snapshot_of_the_last_shutdown_is_deleted_after_a_roll(self, log: PartitionLog) -> None:
        log.append_as_leader(produced("a"), 0)
        log.close()
        reopened = open_log(log.directory)
        reopened.append_as_leader(produced("b", sequence=1), 0)
        reopened.roll()
        reopened.close()
        last = open_log(log.directory)
        assert sorted(files_of(last.directory, SNAPSHOT)) == [f"{2:020d}.snapshot"]

    def test_state_after_truncation_is_that_of_the_remaining_log(self, log: PartitionLog) -> None:
        for number in range(4):
            log.append_as_leader(produced("x", sequence=number), 0)
            log.roll()
        truncate_to(log, 2)
        assert log.producer_state.producers[7].last_sequence == 1
        assert log.append_as_leader(produced("again", sequence=2), 0).first_offset == 2

    def test_restart_without_snapshots_reads_the_log(self, log: PartitionLog) -> None:
        for number in range(3):
            log.append_as_leader(produced("x", sequence=number), 0)
            log.roll()
        log.close()
        for path in log.directory.glob("*.snapshot"):
            path.unlink()
        reopened = open_log(log.directory, load_from=LoadFrom(is_clean=False))
        assert reopened.producer_state.producers[7].last_sequence == 2
        assert values_of(reopened) == ["x", "x", "x"]
