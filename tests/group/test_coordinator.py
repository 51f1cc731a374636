"""The asyncio shell: responses, appends, and loading."""

import asyncio

import pytest

from broker.errors import ApiError, ErrorCode
from broker.group.config import GroupConfig
from broker.group.coordinator import LeavingMember
from broker.group.member import JoinResult
from broker.group.offset_manager import Committer
from broker.group.records import GroupKey, OffsetKey, read_key
from broker.group.states import GroupState
from broker.model import ProducerIdAndEpoch, TopicPartition
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


def test_requests_before_start_and_after_stop_are_refused() -> None:
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


def test_group_of_another_coordinator_is_refused() -> None:
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


def test_requests_while_loading_are_refused_per_api() -> None:
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


def test_leadership_change_of_an_older_epoch_is_ignored() -> None:
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


def test_disconnect_during_a_join_does_not_affect_other_members() -> None:
    async def work() -> None:
        async with running(config=AT_ONCE) as bench:
            gone = bench.coordinator.join("g", joining())
            stays = bench.coordinator.join("g", joining())
            gone.cancel()
            await bench.advance(0)
            assert stays.result().generation_id == 1

    run(work())


def test_commit_is_finished_when_the_client_disconnects() -> None:
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


def test_deletion_of_a_group_writes_all_tombstones() -> None:
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


def test_simple_group_has_no_tombstone_of_its_own() -> None:
    async def work() -> None:
        async with running() as bench:
            await bench.offsets.commit("g", ANYBODY, commits(("t", 0, 1)))
            assert await bench.offsets.delete("g", [A, B]) == {A: ErrorCode.NONE, B: ErrorCode.NONE}
            tombstones = [read_key(r.key) for r in bench.topic.records() if r.value is None]
            assert tombstones == [OffsetKey("g", A)]
            assert bench.coordinator.describe("g").state == "Dead"

    run(work())


def test_offsets_of_deleted_topics_are_removed() -> None:
    async def work() -> None:
        async with running() as bench:
            await bench.offsets.commit("g", ANYBODY, commits(("t", 0, 1), ("u", 0, 2)))
            await bench.offsets.on_partitions_deleted([A, B])
            assert list(bench.offsets.fetch("g", None, False)) == [TopicPartition("u", 0)]

    run(work())


def test_offsets_of_a_transaction_survive_a_failover() -> None:
    async def work() -> None:
        producer = ProducerIdAndEpoch(7, 0)
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
                    "g", "txn", ProducerIdAndEpoch(7, 0), ANYBODY, commits(("t", 0, 5))
                )
            assert code_of(error) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert not bench.topic.records()

    run(work())


def test_transactional_commit_that_is_not_stored_is_not_pending() -> None:
    async def work() -> None:
        async with running() as bench:
            bench.topic.fail_next = ErrorCode.MESSAGE_TOO_LARGE
            errors = await bench.offsets.commit_transactional(
                "g", "txn", ProducerIdAndEpoch(7, 0), ANYBODY, commits(("t", 0, 5))
            )
            assert errors == {A: ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
            assert bench.offsets.fetch("g", [A], True)[A].error is ErrorCode.NONE

    run(work())


def test_regression_commit_that_fails_after_a_reload_leaves_the_loaded_transaction() -> None:
    async def work() -> None:
        async with running() as bench:
            here = bench.coordinator.partition_for("g")
            bench.topic.acks.clear()
            committing = asyncio.create_task(
                bench.offsets.commit_transactional(
                    "g", "txn", ProducerIdAndEpoch(7, 0), ANYBODY, commits(("t", 0, 5))
                )
            )
            await settle()
            bench.coordinator.unload(here, 1)
            await bench.coordinator.load(here, 2)
            bench.topic.fail_acks = ErrorCode.NOT_LEADER_OR_FOLLOWER
            bench.topic.acks.set()
            assert await committing == {A: ErrorCode.NOT_COORDINATOR}
            bench.offsets.on_transaction_completed(7, [here], is_commit=True)
            assert bench.offsets.fetch("g", [A], True)[A].offset == 5

    run(work())


def test_regression_transactional_commit_is_refused_if_leadership_moved_meanwhile() -> None:
    async def work() -> None:
        async def verify(*_: object) -> None:
            bench.coordinator.unload(bench.coordinator.partition_for("g"), 1)

        async with running(verify_transaction=verify) as bench:
            with pytest.raises(ApiError) as error:
                await bench.offsets.commit_transactional(
                    "g", "txn", ProducerIdAndEpoch(7, 0), ANYBODY, commits(("t", 0, 5))
                )
            assert code_of(error) is ErrorCode.NOT_COORDINATOR
            assert not bench.topic.records()

    run(work())


def test_regression_partition_that_cannot_be_read_does_not_stay_loading() -> None:
    async def work() -> None:
        async with running() as bench:
            here = bench.coordinator.partition_for("g")
            bench.coordinator.unload(here, 1)
            bench.topic.break_reads = True
            await bench.coordinator.load(here, 2)
            assert await bench.offsets.commit("g", ANYBODY, commits(("t", 0, 1))) == {
                A: ErrorCode.NONE
            }

    run(work())


def test_failed_tombstones_do_not_stop_the_others() -> None:
    async def work() -> None:
        async with running() as bench:
            for group_id in ("g", "h"):
                await bench.offsets.commit(group_id, ANYBODY, commits(("t", 0, 1)))
            await bench.advance(bench.coordinator.config.offsets_retention_ms)
            bench.topic.fail_next = ErrorCode.NOT_ENOUGH_REPLICAS
            assert await bench.offsets.expire() == 2
            assert sum(record.value is None for record in bench.topic.records()) == 1

    run(work())


def test_loaded_group_above_the_maximum_size_rebalances() -> None:
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


def test_group_filters_ignore_case() -> None:
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


def test_unexpected_append_error_answers_all_requests(caplog: pytest.LogCaptureFixture) -> None:
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
    assert "background task failed task=store groups" in caplog.text


def test_load_of_an_older_epoch_does_not_finish_the_newer_one() -> None:
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
