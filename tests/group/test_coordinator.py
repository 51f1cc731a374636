"""The shell: who is answered, what is stored, what is known after the log is read again."""

import asyncio

import pytest

from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.coordinator import LeavingMember
from broker.group.member import JoinResult
from broker.group.offset_manager import Committer
from broker.group.records import GroupKey, OffsetKey, ProducerState, read_key
from broker.group.states import GroupState
from broker.model import TopicPartition
from tests.group.support import Bench, commits, joining, run, running, settle

AT_ONCE = GroupConfig(group_initial_rebalance_delay_ms=0)
ANYBODY = Committer()
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


async def stable_member(bench: Bench, group_id: str = "g") -> JoinResult:
    """The only member of a stable group."""
    future = bench.coordinator.join(group_id, joining())
    await bench.advance(0)
    joined = future.result()
    bench.coordinator.sync(group_id, (joined.member_id, None, 1), (None, None), {})
    await settle()
    assert bench.coordinator.describe(group_id).state == "Stable"
    return joined


def code_of(error: pytest.ExceptionInfo[ApiError]) -> ErrorCode:
    return error.value.code


def test_nothing_is_answered_before_start_and_after_stop() -> None:
    async def work() -> None:
        bench = Bench()
        with pytest.raises(ApiError) as early:
            bench.coordinator.describe("g")
        await bench.start()
        assert bench.coordinator.describe("g").state == "Dead"
        await bench.coordinator.stop()
        with pytest.raises(ApiError) as late:
            bench.coordinator.describe("g")
        assert {code_of(early), code_of(late)} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
        assert bench.coordinator.list_groups() == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])

    run(work())


def test_partition_that_is_not_led_here_is_somebody_elses() -> None:
    async def work() -> None:
        async with running() as bench:
            partition = bench.coordinator.partition_for("g")
            bench.coordinator.unload(partition, 1)
            assert (
                bench.coordinator.join("g", joining()).result().error is ErrorCode.NOT_COORDINATOR
            )
            with pytest.raises(ApiError) as error:
                bench.offsets.fetch("g", None, False)
            assert code_of(error) is ErrorCode.NOT_COORDINATOR

    run(work())


def test_while_groups_load_members_are_told_to_wait_each_in_their_way() -> None:
    async def work() -> None:
        bench = Bench()
        bench.coordinator.start()
        partition = bench.coordinator.partition_for("g")
        assert bench.coordinator.registry.begin_loading(partition, 0)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert bench.coordinator.join("g", joining()).result().error is loading
        sync = bench.coordinator.sync("g", ("m", None, 1), (None, None), {})
        assert sync.result().error is ErrorCode.REBALANCE_IN_PROGRESS
        assert bench.coordinator.heartbeat("g", "m", None, 1) is ErrorCode.NONE
        assert bench.coordinator.list_groups() == (loading, [])
        with pytest.raises(ApiError) as error:
            await bench.offsets.commit("g", ANYBODY, commits(("t", 0, 1)))
        assert code_of(error) is loading
        await bench.coordinator.stop()

    run(work())


def test_news_of_an_older_epoch_is_ignored() -> None:
    async def work() -> None:
        async with running() as bench:
            partition = bench.coordinator.partition_for("g")
            bench.coordinator.unload(partition, 5)
            await bench.coordinator.load(partition, 4)
            with pytest.raises(ApiError):
                bench.coordinator.describe("g")
            await bench.coordinator.load(partition, 6)
            bench.coordinator.unload(partition, 5)
            assert bench.coordinator.describe("g").state == "Dead"

    run(work())


def test_client_that_hangs_up_while_it_joins_does_not_harm_the_others() -> None:
    async def work() -> None:
        async with running(config=AT_ONCE) as bench:
            gone = bench.coordinator.join("g", joining())
            stays = bench.coordinator.join("g", joining())
            gone.cancel()
            await bench.advance(0)
            assert stays.result().generation_id == 1

    run(work())


def test_commit_is_finished_though_its_client_hung_up() -> None:
    async def work() -> None:
        async with running() as bench:
            bench.topic.acks.clear()
            commit = asyncio.ensure_future(bench.offsets.commit("g", ANYBODY, commits(("t", 0, 5))))
            await settle()
            commit.cancel()
            await settle()
            unstable = bench.offsets.fetch("g", [A], True)[A]
            assert unstable.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
            assert bench.offsets.fetch("g", [A], False)[A].offset == -1
            bench.topic.acks.set()
            await settle()
            assert bench.offsets.fetch("g", [A], True)[A].offset == 5

    run(work())


def test_deleted_group_leaves_tombstones_of_all_it_had() -> None:
    async def work() -> None:
        async with running(config=AT_ONCE) as bench:
            joined = await stable_member(bench)
            committer = Committer(joined.member_id, None, 1)
            await bench.offsets.commit("g", committer, commits(("t", 0, 1), ("t", 1, 2)))
            with pytest.raises(ApiError) as error:
                await bench.offsets.delete_group("g")
            assert code_of(error) is ErrorCode.NON_EMPTY_GROUP
            bench.coordinator.leave("g", [LeavingMember(joined.member_id)])
            await bench.advance(0)
            await bench.offsets.delete_group("g")
            tombstones = [read_key(r.key) for r in bench.topic.records() if r.value is None]
            assert tombstones == [OffsetKey("g", A), OffsetKey("g", B), GroupKey("g")]
            with pytest.raises(ApiError) as missing:
                await bench.offsets.delete_group("g")
            assert code_of(missing) is ErrorCode.GROUP_ID_NOT_FOUND

    run(work())


def test_simple_group_needs_no_tombstone_of_its_own() -> None:
    async def work() -> None:
        async with running() as bench:
            await bench.offsets.commit("g", ANYBODY, commits(("t", 0, 1)))
            assert await bench.offsets.delete("g", [A, B]) == {A: ErrorCode.NONE, B: ErrorCode.NONE}
            tombstones = [read_key(r.key) for r in bench.topic.records() if r.value is None]
            assert tombstones == [OffsetKey("g", A)]
            assert bench.coordinator.describe("g").state == "Dead"

    run(work())


def test_deleted_topics_take_their_offsets_along() -> None:
    async def work() -> None:
        async with running() as bench:
            await bench.offsets.commit("g", ANYBODY, commits(("t", 0, 1), ("u", 0, 2)))
            await bench.offsets.on_partitions_deleted([A, B])
            assert list(bench.offsets.fetch("g", None, False)) == [TopicPartition("u", 0)]

    run(work())


def test_transaction_of_offsets_survives_the_coordinator() -> None:
    async def work() -> None:
        producer = ProducerState(7, 0)
        async with running() as bench:
            await bench.offsets.commit_transactional(
                "g", "txn", producer, ANYBODY, commits(("t", 0, 5))
            )
            topic = bench.topic
        async with running(topic=topic) as bench:
            unstable = bench.offsets.fetch("g", [A], True)[A]
            assert unstable.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
            elsewhere = (bench.coordinator.partition_for("g") + 1) % topic.num_partitions
            bench.offsets.on_transaction_completed(7, [elsewhere], is_commit=True)
            assert bench.offsets.fetch("g", [A], False)[A].offset == -1
            here = bench.coordinator.partition_for("g")
            bench.offsets.on_transaction_completed(7, [here], is_commit=True)
            assert bench.offsets.fetch("g", [A], True)[A].offset == 5

    run(work())


def test_transaction_that_cannot_be_verified_commits_nothing() -> None:
    async def refuse(*_: object) -> None:
        raise ApiError(ErrorCode.NETWORK_EXCEPTION)

    async def work() -> None:
        async with running(verify_transaction=refuse) as bench:
            with pytest.raises(ApiError) as error:
                await bench.offsets.commit_transactional(
                    "g", "txn", ProducerState(7, 0), ANYBODY, commits(("t", 0, 5))
                )
            assert code_of(error) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert not bench.topic.records()

    run(work())


def test_transactional_commit_that_is_not_stored_is_not_waited_for() -> None:
    async def work() -> None:
        async with running() as bench:
            bench.topic.fail_next = ErrorCode.MESSAGE_TOO_LARGE
            errors = await bench.offsets.commit_transactional(
                "g", "txn", ProducerState(7, 0), ANYBODY, commits(("t", 0, 5))
            )
            assert errors == {A: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
            assert bench.offsets.fetch("g", [A], True)[A].error is ErrorCode.NONE

    run(work())


def test_tombstones_that_cannot_be_written_do_not_stop_the_others() -> None:
    async def work() -> None:
        async with running() as bench:
            for group_id in ("g", "h"):
                await bench.offsets.commit(group_id, ANYBODY, commits(("t", 0, 1)))
            await bench.advance(bench.coordinator.config.offsets_retention_ms)
            bench.topic.fail_next = ErrorCode.NOT_ENOUGH_REPLICAS
            assert await bench.offsets.expire() == 2
            assert sum(record.value is None for record in bench.topic.records()) == 1

    run(work())


def test_too_many_loaded_members_must_join_again() -> None:
    async def work() -> None:
        async with running(config=AT_ONCE) as bench:
            futures = [bench.coordinator.join("g", joining()) for _ in range(3)]
            await bench.advance(0)
            leader = futures[0].result()
            bench.coordinator.sync("g", (leader.member_id, None, 1), (None, None), {})
            await settle()
            topic = bench.topic
        async with running(config=GroupConfig(group_max_size=2), topic=topic) as bench:
            assert bench.coordinator.describe("g").state == GroupState.PREPARING_REBALANCE

    run(work())


def test_group_filters_know_no_case() -> None:
    async def work() -> None:
        async with running(config=AT_ONCE) as bench:
            await stable_member(bench, "stable")
            await bench.offsets.commit("empty", ANYBODY, commits(("t", 0, 1)))

            def listed(**filters: list[str]) -> list[str]:
                return sorted(g.group_id for g in bench.coordinator.list_groups(**filters)[1])

            assert listed() == ["empty", "stable"]
            assert listed(states=["EMPTY"]) == ["empty"]
            assert listed(states=["stable", "dead"]) == ["stable"]
            assert listed(types=["Classic"]) == ["empty", "stable"]
            assert listed(types=["consumer"]) == []

    run(work())


def test_append_that_breaks_leaves_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with running(config=AT_ONCE) as bench:
            future = bench.coordinator.join("g", joining())
            await bench.advance(0)
            joined = future.result()
            bench.topic.break_next = True
            sync = bench.coordinator.sync("g", (joined.member_id, None, 1), (None, None), {})
            await settle()
            assert sync.result().error is ErrorCode.UNKNOWN_SERVER_ERROR
            bench.topic.break_next = True
            with pytest.raises(OSError, match="broken"):
                await bench.offsets.commit("h", ANYBODY, commits(("t", 0, 1)))
            assert bench.offsets.fetch("h", [A], True)[A].error is ErrorCode.NONE

    run(work())
    assert "a group could not be stored" in caplog.text


def test_a_reading_of_an_older_epoch_does_not_end_the_newer_one() -> None:
    async def work() -> None:
        bench = Bench()
        bench.coordinator.start()
        registry, partition = bench.coordinator.registry, bench.coordinator.partition_for("g")
        assert registry.begin_loading(partition, 1)
        bench.coordinator.unload(partition, 2)
        assert registry.begin_loading(partition, 3)
        assert not registry.is_being_loaded(partition, 1)
        assert registry.is_being_loaded(partition, 3)
        assert registry.is_being_loaded(partition)
        await bench.coordinator.stop()

    run(work())
