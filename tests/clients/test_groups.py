"""Consumer groups, with every client: rebalances, failover, commits, static members."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import ClassVar

import pytest

from tests.clients.conftest import QUICK
from tests.clients.face import Client, ClientConsumer, Joining, Message, read
from tests.clients.librdkafka import Librdkafka, LibrdkafkaAdmin
from tests.support.broker import running_broker

RECORDS = 40
Join = Callable[[Joining], ClientConsumer]


@pytest.fixture
def filled(servers: str, topic: str) -> str:
    fill(servers, topic)
    return topic


def fill(servers: str, topic: str) -> None:
    Librdkafka().produce(
        servers, topic, [Message(b"%d" % n, partition=n % 4) for n in range(RECORDS)]
    )


@pytest.fixture
def join(client: Client, servers: str, filled: str) -> Iterator[Join]:
    """Makes members that are closed at the end."""
    with ExitStack() as members:

        def joined(how: Joining) -> ClientConsumer:
            member = client.consumer(servers, how)
            members.callback(member.close)
            member.subscribe(filled)
            return member

        yield joined


def poll_until(members: Sequence[ClientConsumer], is_reached: Callable[[], bool]) -> list[Message]:
    """Poll all members in turn until the condition holds, or pytest's time limit ends the test."""
    received: list[Message] = []
    while not is_reached():
        for member in members:
            received += member.poll()
    return received


def shares(members: Sequence[ClientConsumer]) -> list[int]:
    return sorted(len(member.partitions()) for member in members)


def positions(messages: Sequence[Message]) -> dict[int, int]:
    return {message.partition: message.offset + 1 for message in messages}


class TestGroups:
    needs: ClassVar = ("groups",)

    def test_members_share_the_partitions_and_read_everything(
        self, join: Join, filled: str
    ) -> None:
        first = join(Joining(group_id=filled))
        received = poll_until([first], lambda: shares([first]) == [4])
        second = join(Joining(group_id=filled))
        received += poll_until([first, second], lambda: shares([first, second]) == [2, 2])
        assert first.partitions() | second.partitions() == {0, 1, 2, 3}
        while {message.value for message in received} != {b"%d" % n for n in range(RECORDS)}:
            received += first.poll() + second.poll()

    def test_remaining_member_takes_over(
        self, client: Client, servers: str, join: Join, filled: str
    ) -> None:
        stays = join(Joining(group_id=filled))
        poll_until([stays], lambda: shares([stays]) == [4])
        with closing(client.consumer(servers, Joining(group_id=filled))) as leaves:
            leaves.subscribe(filled)
            poll_until([stays, leaves], lambda: shares([stays, leaves]) == [2, 2])
        poll_until([stays], lambda: shares([stays]) == [4])

    @pytest.mark.parametrize("way", ["commit", "commit_async"])
    def test_next_member_goes_on_where_the_last_one_committed(
        self, client: Client, servers: str, filled: str, way: str
    ) -> None:
        with closing(client.consumer(servers, Joining(group_id=filled))) as first:
            first.subscribe(filled)
            received = read(first, RECORDS)
            getattr(first, way)(filled, dict.fromkeys(positions(received), 7))
            while first.committed(filled, 3) != 7:
                first.poll()
        with closing(client.consumer(servers, Joining(group_id=filled))) as second:
            second.subscribe(filled)
            received = read(second, 12)
        assert sorted(message.offset for message in received) == [7] * 4 + [8] * 4 + [9] * 4

    def test_nothing_is_committed_before_the_first_commit(
        self, client: Client, servers: str, filled: str
    ) -> None:
        with closing(client.consumer(servers, Joining(group_id=filled))) as consumer:
            consumer.subscribe(filled)
            read(consumer, RECORDS)
            assert consumer.committed(filled, 0) is None

    def test_static_member_comes_back_to_its_partitions(
        self, client: Client, servers: str, join: Join, filled: str
    ) -> None:
        stays = join(Joining(filled, "stays"))
        poll_until([stays], lambda: shares([stays]) == [4])
        with closing(client.consumer(servers, Joining(filled, "restarts"))) as before:
            before.subscribe(filled)
            poll_until([stays, before], lambda: shares([stays, before]) == [2, 2])
            own = before.partitions()
        after = join(Joining(filled, "restarts"))
        poll_until([after, stays], lambda: after.partitions() == own)
        assert shares([stays]) == [2]

    def test_group_survives_a_restart_of_the_broker(self, client: Client, tmp_path: Path) -> None:
        with running_broker(tmp_path, **QUICK) as broker:
            LibrdkafkaAdmin(broker.bootstrap_servers).create_topic("kept", 4, {})
            fill(broker.bootstrap_servers, "kept")
            how = Joining(group_id="kept")
            with closing(client.consumer(broker.bootstrap_servers, how)) as first:
                first.subscribe("kept")
                read(first, RECORDS)
                first.commit("kept", dict.fromkeys(range(4), 8))
        with (
            running_broker(tmp_path, **QUICK) as broker,
            closing(client.consumer(broker.bootstrap_servers, how)) as second,
        ):
            second.subscribe("kept")
            received = read(second, 8)
        assert sorted(message.offset for message in received) == [8] * 4 + [9] * 4


class TestCooperativeGroups:
    needs: ClassVar = ("cooperative",)

    def test_member_keeps_what_it_need_not_give_up(self, join: Join, filled: str) -> None:
        how = Joining(group_id=filled, is_cooperative=True)
        first = join(how)
        poll_until([first], lambda: shares([first]) == [4])
        second = join(how)
        smallest = 4

        def is_shared() -> bool:
            nonlocal smallest
            smallest = min(smallest, len(first.partitions()))
            return shares([first, second]) == [2, 2]

        poll_until([first, second], is_shared)
        assert smallest == 2
