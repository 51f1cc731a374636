"""Kafka's znodes, byte for byte.

`encoded.jsonl` is what Kafka 3.9.1's own classes wrote (EncodeZnodes.java, beside it, made it);
`cluster.jsonl` is every znode of a running cluster of three. Reading one and writing it again must
give the same bytes.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.metadata.store import parent_of
from broker.metadata.znodes.acls import AclChangeZnode, ResourceZnode
from broker.metadata.znodes.admin import (
    PreferredReplicaElectionZnode,
    ReassignPartitionsZnode,
    delete_topic_path,
)
from broker.metadata.znodes.brokers import BrokerIdZnode, Endpoint
from broker.metadata.znodes.cluster import ClusterIdZnode, FeatureZnode, ProducerIdBlockZnode
from broker.metadata.znodes.configs import (
    ConfigChangeZnode,
    ConfigEntityZnode,
    desanitize,
    sanitize,
)
from broker.metadata.znodes.consumers import (
    ConsumerIdZnode,
    ConsumerOffsetZnode,
    consumer_owner_path,
)
from broker.metadata.znodes.controller import ControllerEpochZnode, ControllerZnode
from broker.metadata.znodes.json_text import (
    MalformedZnode,
    java_properties,
    scala_immutable_map,
    scala_mutable_map,
)
from broker.metadata.znodes.layout import (
    TOP_LEVEL_PATHS,
    authorizer_paths,
    delegation_token_paths,
    persistent_paths,
)
from broker.metadata.znodes.notifications import IsrChangeZnode, LogDirEventZnode
from broker.metadata.znodes.tokens import DelegationTokenZnode, TokenChangeZnode
from broker.metadata.znodes.topics import PartitionStateZnode, ReplicaAssignment, TopicZnode
from broker.model import TopicPartition, Uuid
from broker.security.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "zookeeper"
ENCODED = [json.loads(line) for line in (GOLDEN / "encoded.jsonl").read_text().splitlines()]
CLUSTER = [json.loads(line) for line in (GOLDEN / "cluster.jsonl").read_text().splitlines()]
WITH_DATA = [znode for znode in ENCODED + CLUSTER if znode["data"]]
T0 = TopicPartition("t", 0)

KEYS = sorted({key for z in WITH_DATA if z["data"][0] == "{" for key in json.loads(z["data"])})

Again = Callable[[str, bytes], bytes]

# A path's pattern, and how what stands there is read and written again.
AGAIN: dict[str, Again] = {
    r"/brokers/ids/\d+": lambda path, data: BrokerIdZnode.decode(1, data).encode(),
    r"/brokers/topics/[^/]+": lambda path, data: TopicZnode.decode("t", data).encode(),
    r"/brokers/topics/.*/state": lambda path, data: PartitionStateZnode.decode(T0, data).encode(),
    r"/config/changes/.*": lambda path, data: ConfigChangeZnode.encode(
        ConfigChangeZnode.decode(data)
    ),
    r"/config/(?!changes).*": lambda path, data: ConfigEntityZnode.encode(
        ConfigEntityZnode.decode(path, data)
    ),
    r"/controller": lambda path, data: ControllerZnode.decode(data).encode(),
    r"/controller_epoch": lambda path, data: ControllerEpochZnode.encode(
        ControllerEpochZnode.decode(data)
    ),
    r"/cluster/id": lambda path, data: ClusterIdZnode.encode(ClusterIdZnode.decode(data)),
    r"/feature": lambda path, data: FeatureZnode.decode(data).encode(),
    r"/latest_producer_id_block": lambda path, data: ProducerIdBlockZnode.decode(data).encode(),
    r"/admin/preferred_replica_election": lambda path, data: PreferredReplicaElectionZnode.encode(
        PreferredReplicaElectionZnode.decode(data)
    ),
    r"/admin/reassign_partitions": lambda path, data: ReassignPartitionsZnode.encode(
        ReassignPartitionsZnode.decode(data)
    ),
    r"/isr_change_notification/.*": lambda path, data: IsrChangeZnode.encode(
        IsrChangeZnode.decode(data)
    ),
    r"/log_dir_event_notification/.*": lambda path, data: LogDirEventZnode.encode(
        LogDirEventZnode.decode(data)
    ),
    r"/kafka-acl/.*": lambda path, data: ResourceZnode.encode(ResourceZnode.decode(path, data)),
    r"/kafka-acl-changes/.*": lambda path, data: AclChangeZnode.encode(
        AclChangeZnode.decode_literal(data)
    ),
    r"/kafka-acl-extended-changes/.*": lambda path, data: AclChangeZnode.encode(
        AclChangeZnode.decode_extended(data)
    ),
    r"/delegation_token/tokens/.*": lambda path, data: DelegationTokenZnode.decode(
        "id", data
    ).encode(),
    r"/delegation_token/token_changes/.*": lambda path, data: TokenChangeZnode.encode(
        TokenChangeZnode.decode(data)
    ),
    r"/consumers/.*/offsets/.*": lambda path, data: ConsumerOffsetZnode.encode(
        ConsumerOffsetZnode.decode(path, data) or 0
    ),
}


def again(path: str) -> Again:
    (found,) = [codec for pattern, codec in AGAIN.items() if re.fullmatch(pattern, path)]
    return found


def path_of(znode: dict[str, Any]) -> str:
    return str(znode["path"])


def is_ours(path: str) -> bool:
    """Of the samples only /migration, KRaft's own, has no reader here."""
    return path != "/migration"


@pytest.mark.parametrize(
    "znode", [z for z in WITH_DATA if "order" not in z and is_ours(z["path"])], ids=path_of
)
def test_decoded_and_encoded_znode_is_what_kafka_wrote(znode: dict[str, Any]) -> None:
    data = znode["data"].encode()
    assert again(znode["path"])(znode["path"], data) == data


@pytest.mark.parametrize("znode", [z for z in ENCODED if "order" in z], ids=path_of)
def test_config_is_encoded_in_the_order_of_javas_properties(znode: dict[str, Any]) -> None:
    config = json.loads(znode["data"])["config"]
    as_it_came = {key: config[key] for key in znode["order"]}
    assert ConfigEntityZnode.encode(as_it_came) == znode["data"].encode()


def test_samples_have_every_kind_of_znode() -> None:
    paths = [z["path"] for z in WITH_DATA]
    unseen = [pattern for pattern in AGAIN if not any(re.fullmatch(pattern, p) for p in paths)]
    assert unseen == []


class TestWhatIsRead:
    def test_broker_of_version_5(self) -> None:
        data = next(z["data"] for z in CLUSTER if z["path"] == "/brokers/ids/1")
        assert BrokerIdZnode.decode(1, data.encode()) == BrokerIdZnode(
            broker_id=1,
            endpoints=(Endpoint("CLIENT", "127.0.0.1", 29201, "PLAINTEXT"),),
            rack="rack-1",
            timestamp=1794788751563,
        )

    @pytest.mark.parametrize(
        ("data", "endpoints"),
        [
            (
                '{"version":1,"host":"h","port":9092,"jmx_port":9999,"timestamp":"22"}',
                (Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),),
            ),
            (
                '{"version":2,"host":"h","port":9092,"jmx_port":9999,"timestamp":"22",'
                '"endpoints":["PLAINTEXT://h:9092","SSL://[fe80::1%eth0]:9093"]}',
                (
                    Endpoint("PLAINTEXT", "h", 9092, "PLAINTEXT"),
                    Endpoint("SSL", "fe80::1%eth0", 9093, "SSL"),
                ),
            ),
            (
                '{"version":3,"host":null,"port":-1,"jmx_port":9999,"timestamp":"22",'
                '"endpoints":["SASL_SSL://:9093"],"rack":"dc1"}',
                (Endpoint("SASL_SSL", "", 9093, "SASL_SSL"),),
            ),
        ],
    )
    def test_broker_of_older_versions(self, data: str, endpoints: tuple[Endpoint, ...]) -> None:
        broker = BrokerIdZnode.decode(7, data.encode())
        assert broker.endpoints == endpoints
        assert (broker.broker_id, broker.jmx_port, broker.timestamp) == (7, 9999, 22)
        assert broker.rack == ("dc1" if broker.version == 3 else None)

    @pytest.mark.parametrize(
        "data",
        [
            '{"version":1,"partitions":{"1":[2],"0":[1,2]}}',
            '{"version":2,"partitions":{"1":[2],"0":[1,2]},'
            '"adding_replicas":{},"removing_replicas":{}}',
        ],
    )
    def test_topic_of_older_versions_has_no_id(self, data: str) -> None:
        topic = TopicZnode.decode("t", data.encode())
        assert topic.topic_id is None
        assert list(topic.assignment.items()) == [
            (0, ReplicaAssignment((1, 2))),
            (1, ReplicaAssignment((2,))),
        ]

    def test_reassignment_in_progress(self) -> None:
        data = next(z["data"] for z in ENCODED if z["path"] == "/brokers/topics/t2")
        topic = TopicZnode.decode("t", data.encode())
        assert topic.assignment[1] == ReplicaAssignment((1, 2), (7, 8), (9,))
        assert topic.topic_id == Uuid.parse("yfLe6UizRoODXPLAHdUccg")

    def test_recovering_leader(self) -> None:
        state = PartitionStateZnode(3, 12, (3, 1, 2), 44, is_recovering=True)
        assert PartitionStateZnode.decode(T0, state.encode()) == state
        recovered = replace(state, is_recovering=False)
        assert PartitionStateZnode.decode(T0, recovered.encode()) == recovered

    def test_controller_of_version_1_has_no_kraft_epoch(self) -> None:
        data = b'{"version":1,"brokerid":2,"timestamp":"179"}'
        assert ControllerZnode.decode(data) == ControllerZnode(2, 179)

    def test_config_change_of_version_1_names_type_and_entity(self) -> None:
        data = b'{"version":1,"entity_type":"topics","entity_name":"orders"}'
        assert ConfigChangeZnode.decode(data) == "topics/orders"

    def test_config_without_data_is_empty(self) -> None:
        assert ConfigEntityZnode.decode("/config/users/u", None) == {}

    def test_acls(self) -> None:
        data = next(z["data"] for z in ENCODED if z["path"] == "/kafka-acl/Topic/orders")
        acls = ResourceZnode.decode("/kafka-acl/Topic/orders", data.encode())
        assert acls[1] == AccessControlEntry(
            "User:alice", "*", AclOperation.DESCRIBE_CONFIGS, AclPermissionType.ALLOW
        )
        assert ResourceZnode.decode("/kafka-acl/Topic/orders", None) == []

    def test_token_of_version_1_was_requested_by_its_owner(self) -> None:
        token = DelegationTokenZnode("id", "User:a b", "User:a b", ("User:r",), 1, 3, 2)
        fields = json.loads(token.encode()) | {"version": 1}
        del fields["tokenRequester"]
        assert DelegationTokenZnode.decode("id", json.dumps(fields).encode()) == token

    def test_old_consumer(self) -> None:
        consumer = ConsumerIdZnode({"orders": 2}, ConsumerIdZnode.STATIC, 179)
        data = consumer.encode()
        assert data == (
            b'{"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"179"}'
        )
        assert ConsumerIdZnode.decode("/consumers/g/ids/c", data) == consumer

    def test_offset_of_a_node_without_data_is_none(self) -> None:
        assert ConsumerOffsetZnode.decode("/consumers/g/offsets/t/0", None) is None

    def test_producer_id_blocks_follow_each_other(self) -> None:
        first = ProducerIdBlockZnode.next_block(1, None)
        assert (first.first_producer_id, first.last_producer_id) == (0, 999)
        assert ProducerIdBlockZnode.next_block(2, first) == ProducerIdBlockZnode(2, 1000, 1999)


class TestPaths:
    def test_paths_are_kafkas(self) -> None:
        orders_3 = TopicPartition("orders", 3)
        assert [
            BrokerIdZnode.path(1),
            TopicZnode.path("orders"),
            PartitionStateZnode.path(orders_3),
            ConfigEntityZnode.path("topics", "orders"),
            delete_topic_path("orders"),
            ResourceZnode.path(ResourcePattern(ResourceType.TRANSACTIONAL_ID, "x")),
            ResourceZnode.path(ResourcePattern(ResourceType.GROUP, "g-", PatternType.PREFIXED)),
            AclChangeZnode.prefix(ResourcePattern(ResourceType.TOPIC, "t")),
            AclChangeZnode.prefix(ResourcePattern(ResourceType.TOPIC, "t", PatternType.PREFIXED)),
            DelegationTokenZnode.path("id"),
            ConsumerOffsetZnode.path("g", orders_3),
            ConsumerIdZnode.path("g", "c"),
            consumer_owner_path("g", orders_3),
        ] == [
            "/brokers/ids/1",
            "/brokers/topics/orders",
            "/brokers/topics/orders/partitions/3/state",
            "/config/topics/orders",
            "/admin/delete_topics/orders",
            "/kafka-acl/TransactionalId/x",
            "/kafka-acl-extended/prefixed/Group/g-",
            "/kafka-acl-changes/acl_changes_",
            "/kafka-acl-extended-changes/acl_changes_",
            "/delegation_token/tokens/id",
            "/consumers/g/offsets/orders/3",
            "/consumers/g/ids/c",
            "/consumers/g/owners/orders/3",
        ]

    def test_paths_created_at_startup_are_those_of_a_kafka_cluster(self) -> None:
        """All nodes without data in the sample, except topics and the parent of /cluster/id."""
        made = {*persistent_paths(), *authorizer_paths(), *delegation_token_paths()}
        above = {parent_of(path) for path in made} | {"/", "/kafka-acl-extended", "/cluster"}
        without_data = {z["path"] for z in CLUSTER if not z["data"] and "/topics/" not in z["path"]}
        assert made | above == without_data | {"/latest_producer_id_block"}

    def test_every_sampled_path_belongs_to_kafka(self) -> None:
        tops = {"/" + z["path"].split("/")[1] for z in CLUSTER if z["path"] != "/"}
        assert tops <= set(TOP_LEVEL_PATHS)


class TestMalformed:
    @pytest.mark.parametrize(
        "data", [None, b"", b"{", b"[]", b"3", b"\xff", b"{}", b'{"version":9}']
    )
    @pytest.mark.parametrize(
        "path", ["/brokers/ids/1", "/cluster/id", "/feature", "/latest_producer_id_block"]
    )
    def test_error_of_malformed_data_contains_path_and_data(self, path: str, data: bytes) -> None:
        with pytest.raises(MalformedZnode, match=re.escape(f"{path}: ")) as caught:
            again(path)(path, data)
        assert repr(data) in str(caught.value)

    @given(
        pattern=st.sampled_from(sorted(AGAIN)),
        value=st.recursive(
            st.none() | st.integers() | st.text(max_size=5) | st.booleans(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(KEYS),
                    inner,
                )
            ),
        ),
    )
    def test_any_json_is_decoded_or_malformed_and_raises_nothing_else(
        self, pattern: str, value: object
    ) -> None:
        try:
            AGAIN[pattern]("/x", json.dumps(value).encode())
        except MalformedZnode as error:
            assert error.path


class TestOrder:
    @given(st.dictionaries(st.text(), st.integers(), max_size=60))
    def test_maps_keep_every_entry(self, entries: dict[str, int]) -> None:
        for ordered in (scala_mutable_map, scala_immutable_map, java_properties):
            assert ordered(entries) == entries

    def test_keys_of_equal_hash_are_kept(self) -> None:
        same_hash = ["AaAa", "BBBB", "AaBB", "BBAa", "x", "y"]
        entries = dict.fromkeys(same_hash, 0)
        for ordered in (scala_mutable_map, scala_immutable_map, java_properties):
            assert ordered(entries) == entries

    @given(st.permutations([str(n) for n in range(30)]))
    def test_order_of_partitions_does_not_depend_on_the_insertion_order(
        self, partitions: list[str]
    ) -> None:
        sorted_first = scala_mutable_map({str(n): n for n in range(30)})
        assert list(scala_mutable_map({p: int(p) for p in partitions})) == list(sorted_first)


@given(st.text())
def test_sanitized_name_is_a_node_name_and_reads_back(name: str) -> None:
    node_name = sanitize(name.encode(errors="replace").decode())
    assert re.fullmatch(r"[\w.%-]*", node_name, re.ASCII)
    assert desanitize(node_name) == name.encode(errors="replace").decode()
