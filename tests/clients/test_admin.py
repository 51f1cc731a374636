"""Admin requests, with every client that supports them."""

from collections.abc import Iterator
from contextlib import closing
from typing import ClassVar

import pytest

from tests.clients.face import Client, ClientAdmin, Joining, Message, Refused, read
from tests.clients.librdkafka import Librdkafka


@pytest.fixture
def admin(client: Client, servers: str) -> Iterator[ClientAdmin]:
    with closing(client.admin(servers)) as admin:
        yield admin


class TestAdministering:
    needs: ClassVar = ("admin",)

    def test_topic_is_created_grown_and_deleted(self, admin: ClientAdmin, topic: str) -> None:
        name = f"{topic}-own"
        admin.create_topic(name, 2, {"retention.ms": "1234"})
        assert admin.topics()[name] == 2
        assert admin.topic_config(name, "retention.ms") == "1234"
        admin.add_partitions(name, 5)
        assert admin.topics()[name] == 5
        admin.delete_topic(name)
        assert name not in admin.topics()

    def test_what_cannot_be_is_refused_by_its_name(self, admin: ClientAdmin, topic: str) -> None:
        with pytest.raises(Refused, match="topicalreadyexists"):
            admin.create_topic(topic, 1, {})
        with pytest.raises(Refused, match="invalidpartitions"):
            admin.create_topic(f"{topic}-none", 0, {})
        with pytest.raises(Refused, match="invalidpartitions"):
            admin.add_partitions(topic, 2)
        with pytest.raises(Refused, match="invalidconfig"):
            admin.create_topic(f"{topic}-bad", 1, {"retention.ms": "soon"})
        with pytest.raises(Refused, match=r"invalidtopic|^topic"):
            admin.create_topic("spaces are not allowed", 1, {})

    def test_config_is_set_and_described(self, admin: ClientAdmin, topic: str) -> None:
        assert admin.topic_config(topic, "cleanup.policy") == "delete"
        admin.set_topic_config(topic, "cleanup.policy", "compact")
        assert admin.topic_config(topic, "cleanup.policy") == "compact"

    def test_records_are_deleted_up_to_an_offset(
        self, client: Client, servers: str, admin: ClientAdmin, topic: str
    ) -> None:
        Librdkafka().produce(servers, topic, [Message(b"%d" % n) for n in range(10)])
        admin.delete_records(topic, 0, 4)
        with closing(client.consumer(servers)) as consumer:
            assert consumer.bounds(topic, 0) == (4, 10)
            consumer.assign(topic, {0: 4})
            assert read(consumer, 6)[0].value == b"4"

    def test_group_is_listed_and_described(
        self, client: Client, servers: str, admin: ClientAdmin, topic: str
    ) -> None:
        Librdkafka().produce(servers, topic, [Message(b"one")])
        with closing(client.consumer(servers, Joining(group_id=topic))) as member:
            member.subscribe(topic)
            read(member, 1)
            assert topic in admin.groups()
            assert admin.group_state(topic) == "stable"
            member.commit(topic, {0: 1})
        assert admin.group_state(topic) == "empty"


class TestDeletingGroups:
    needs: ClassVar = ("delete groups",)

    def test_group_is_deleted_once_it_is_empty(
        self, client: Client, servers: str, admin: ClientAdmin, topic: str
    ) -> None:
        Librdkafka().produce(servers, topic, [Message(b"one")])
        with closing(client.consumer(servers, Joining(group_id=topic))) as member:
            member.subscribe(topic)
            read(member, 1)
            member.commit(topic, {0: 1})
            with pytest.raises(Refused, match="nonemptygroup"):
                admin.delete_group(topic)
        admin.delete_group(topic)
        assert topic not in admin.groups()
