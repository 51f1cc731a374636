"""Cases beyond the scenarios: disconnected clients, loading, periodic tasks, filters."""

import asyncio
import logging
from collections.abc import Iterable

import pytest

from broker.errors import ApiError, ErrorCode
from broker.model import ProducerIdAndEpoch, TopicPartition
from broker.records.batch import Batch
from broker.records.builder import build_batch
from broker.txn.config import TxnConfig
from broker.txn.coordinator import TransactionCoordinator, TransactionFilter
from broker.txn.records import build_transaction_batch
from broker.txn.states import COMPLETE_ABORT, COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT
from broker.txn.transaction import TransactionMetadata
from tests.records.golden import batches
from tests.txn.support import START_MS, Bench, MemoryTransactionTopic, Written, running, settle

T0 = TopicPartition("t", 0)


async def begin(bench: Bench, transactional_id: str = "app") -> ProducerIdAndEpoch:
    """A producer with an ongoing transaction on t-0."""
    producer = await bench.coordinator.init_producer_id(transactional_id, 60_000)
    await bench.coordinator.add_partitions(transactional_id, producer, [T0])
    return producer


async def test_producer_without_transactional_id_gets_a_new_id_each_time() -> None:
    async with running() as bench:
        first = await bench.coordinator.init_producer_id(None, 0)
        second = await bench.coordinator.init_producer_id(None, 0)
        assert (first, second) == ((0, 0), (1, 0))
        assert bench.trace == []


@pytest.mark.parametrize("request_name", ["init", "add", "verify", "end", "describe"])
async def test_empty_transactional_id_is_an_invalid_request(request_name: str) -> None:
    async with running() as bench:
        coordinator, unknown = bench.coordinator, ProducerIdAndEpoch(0, 0)
        with pytest.raises(ApiError) as caught:
            match request_name:
                case "init":
                    await coordinator.init_producer_id("", 60_000)
                case "add":
                    await coordinator.add_partitions("", unknown, [T0])
                case "verify":
                    coordinator.verify_partitions("", unknown, [T0])
                case "end":
                    await coordinator.end_transaction("", unknown, commit=True)
                case _:
                    coordinator.describe_transaction("")
        assert caught.value.code == ErrorCode.INVALID_REQUEST


async def test_commit_is_finished_when_the_client_disconnects() -> None:
    async with running() as bench:
        producer = await begin(bench)
        bench.topic.acks.clear()
        request = asyncio.create_task(
            bench.coordinator.end_transaction("app", producer, commit=True)
        )
        await settle()
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        bench.topic.acks.set()
        await settle()
        assert bench.coordinator.describe_transaction("app").state == COMPLETE_COMMIT


async def test_concurrent_first_init_producer_ids_leave_one_owner() -> None:
    async with running() as bench:
        bench.topic.acks.clear()
        requests = [
            asyncio.create_task(bench.coordinator.init_producer_id("app", 60_000)) for _ in range(3)
        ]
        await settle()
        bench.topic.acks.set()
        answers = await asyncio.gather(*requests, return_exceptions=True)
        codes = [answer.code for answer in answers if isinstance(answer, ApiError)]
        assert codes == [ErrorCode.CONCURRENT_TRANSACTIONS] * 2
        known = bench.coordinator.describe_transaction("app")
        assert (known.producer_id, known.producer_epoch) in answers


async def test_requests_while_loading_get_load_in_progress() -> None:
    async with running() as bench:
        await begin(bench)
        partition = bench.coordinator.partition_for("app")
        for number in range(1000):  # more than one slice
            known = TransactionMetadata(1, 1, START_MS, producer_epoch=number, state=EMPTY)
            await bench.topic.append(partition, build_transaction_batch("app", known, START_MS))
        loading = bench.coordinator.on_election(partition, 2)
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as described:
            bench.coordinator.describe_transaction("app")
        with pytest.raises(ApiError) as listed:
            bench.coordinator.list_transactions(TransactionFilter())
        await loading
        assert described.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert listed.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert bench.coordinator.describe_transaction("app").producer_epoch == 999


async def test_log_written_by_kafka_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryTransactionTopic, "num_partitions", 50)
    async with running() as bench:
        for partition in (36, 37):
            data = b"".join(
                bytes(batch.view) for batch in batches(f"magic2/__transaction_state-{partition}")
            )
            bench.topic.logs[partition] += data
            await bench.coordinator.on_election(partition, 1)
        committed = bench.coordinator.describe_transaction("golden-txn-1")
        aborted = bench.coordinator.describe_transaction("golden-txn-0")
        assert (committed.state, committed.producer_id) == (COMPLETE_COMMIT, 2)
        assert (aborted.state, aborted.producer_id) == (COMPLETE_ABORT, 1)
        assert await bench.coordinator.init_producer_id("golden-txn-1", 60_000) == (2, 3)


async def test_leadership_lost_while_loading_unloads_the_partition() -> None:
    async with running() as bench:
        partition = bench.coordinator.partition_for("app")
        for _ in range(1000):
            known = TransactionMetadata(1, 1, START_MS, producer_epoch=0)
            await bench.topic.append(partition, build_transaction_batch("app", known, START_MS))
        loading = bench.coordinator.on_election(partition, 2)
        await asyncio.sleep(0)
        bench.coordinator.on_resignation(partition, 2)
        await loading
        with pytest.raises(ApiError) as caught:
            bench.coordinator.describe_transaction("app")
        assert caught.value.code == ErrorCode.NOT_COORDINATOR


async def test_prepared_transactions_are_completed_after_start() -> None:
    async with running() as bench:
        producer = await begin(bench)
        bench.markers.open.clear()
        await bench.coordinator.end_transaction("app", producer, commit=True)
        await bench.coordinator.stop()
        bench.markers.open.set()
        bench.coordinator = bench.new_coordinator()
        await bench.elect()
        await settle()
        assert bench.coordinator.describe_transaction("app").state == PREPARE_COMMIT
        bench.coordinator.start()
        await settle()
        assert bench.coordinator.describe_transaction("app").state == COMPLETE_COMMIT


async def test_election_of_a_known_epoch_changes_nothing() -> None:
    async with running() as bench:
        producer = await begin(bench)
        bench.topic.acks.clear()
        request = asyncio.create_task(
            bench.coordinator.end_transaction("app", producer, commit=True)
        )
        await settle()
        await bench.coordinator.on_election(bench.coordinator.partition_for("app"), bench.epoch)
        bench.topic.acks.set()
        await request


async def test_log_that_cannot_be_read_is_not_coordinated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as bench:
        await begin(bench)

        def unreadable(partition: int) -> Iterable[Batch]:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)

        monkeypatch.setattr(bench.topic, "read", unreadable)
        await bench.elect()
        with pytest.raises(ApiError) as caught:
            bench.coordinator.describe_transaction("app")
        assert caught.value.code == ErrorCode.NOT_COORDINATOR
    assert "cannot load transactions" in caplog.text


async def test_resignation_of_an_older_epoch_is_ignored() -> None:
    async with running() as bench:
        await begin(bench)
        await bench.elect()
        bench.coordinator.on_resignation(bench.coordinator.partition_for("app"), bench.epoch - 1)
        assert bench.coordinator.describe_transaction("app").state == ONGOING


async def test_record_that_cannot_be_decoded_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    async with running() as bench:
        await begin(bench)
        partition = bench.coordinator.partition_for("app")
        await bench.topic.append(partition, build_batch([(0, 1, b"\0\0\0\1x", b"bad", ())]))
        await bench.topic.append(partition, build_batch([(0, 1, b"\0\7", b"", ())]))
        await bench.restart()
        assert bench.coordinator.describe_transaction("app").state == ONGOING
    assert "ignored record that cannot be decoded" in caplog.text
    assert "ignored record with an unknown key version" in caplog.text


async def test_periodic_tasks_run() -> None:
    config = TxnConfig(
        transaction_abort_timed_out_transaction_cleanup_interval_ms=1,
        transaction_remove_expired_transaction_cleanup_interval_ms=1,
    )
    async with running(config) as bench:
        await begin(bench)
        bench.clock.advance(60_001)
        await bench.topic.appended("app", COMPLETE_ABORT)
        bench.clock.advance(config.transactional_id_expiration_ms)
        await bench.topic.appended("app", None)


async def test_failed_periodic_task_is_logged_and_repeated(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TxnConfig(transaction_abort_timed_out_transaction_cleanup_interval_ms=1)
    runs = asyncio.Semaphore(0)

    async def broken(self: TransactionCoordinator) -> None:
        runs.release()
        raise RuntimeError("no such luck")

    monkeypatch.setattr(TransactionCoordinator, "abort_timed_out_transactions", broken)
    async with running(config):
        async with asyncio.timeout(5):
            await runs.acquire()
            await runs.acquire()
    assert "no such luck" in caplog.text


async def test_list_filters_by_producer_id() -> None:
    async with running() as bench:
        await begin(bench, "a")
        producer = await begin(bench, "b")
        wanted = TransactionFilter(producer_ids=frozenset({producer.producer_id}))
        assert bench.coordinator.list_transactions(wanted) == [("b", producer.producer_id, ONGOING)]


async def test_many_expired_ids_are_removed_in_several_batches() -> None:
    async with running(TxnConfig(transactional_id_expiration_ms=1)) as bench:
        partition = bench.coordinator.partition_for("0")
        names = [str(number) for number in range(8000)]
        here = [name for name in names if bench.coordinator.partition_for(name) == partition]
        for name in here:
            known = TransactionMetadata(1, 1, START_MS, producer_epoch=0)
            await bench.topic.append(partition, build_transaction_batch(name, known, START_MS))
        await bench.elect()
        before = len(list(bench.topic.read(partition)))
        bench.clock.advance(10)
        await bench.coordinator.remove_expired_transactional_ids()
        batches = list(bench.topic.read(partition))[before:]
        assert sum(len(batch.records()) for batch in batches) == len(here) > 1000
        assert max(len(batch.records()) for batch in batches) == 1000
        assert bench.coordinator.list_transactions(TransactionFilter()) == []


async def test_rejected_marker_is_logged_with_the_partition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running() as bench:
        producer = await begin(bench)
        bench.markers.errors[T0] = [ErrorCode.INVALID_PRODUCER_EPOCH]
        with caplog.at_level(logging.ERROR):
            await bench.coordinator.end_transaction("app", producer, commit=True)
            await settle()
    assert "t-0: INVALID_PRODUCER_EPOCH" in caplog.text
    assert not [event for event in bench.trace if isinstance(event, Written)]
