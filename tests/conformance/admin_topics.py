"""Conversations about topics: create, grow, delete, look at."""

from typing import Any

from broker.model import Uuid
from broker.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from broker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conformance.exchange import Exchange, Talk, carried

UNKNOWN_ID = Uuid(b"no topic has it!")


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    manual: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    """A topic to create; `retention_ms="1"` sets retention.ms."""
    return CreatableTopic(
        name=name,
        num_partitions=-1 if manual else partitions,
        replication_factor=-1 if manual else replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
            for index, ids in (manual or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )


def create(*topics: CreatableTopic, timeout_ms: int = 10_000) -> CreateTopicsRequest:
    """Create topics and wait for them."""
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms)


def look_at(*names: str) -> MetadataRequest:
    """Request metadata of topics without creating them."""
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
    )


def _metadata(version: int, names: list[str] | None, **fields: Any) -> MetadataRequest:
    asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    defaults = {"allow_auto_topic_creation": False, "topics": asked}
    request: MetadataRequest = carried(MetadataRequest, version, **(defaults | fields))
    return request


def _delete(version: int, *names: str, timeout_ms: int = 10_000) -> DeleteTopicsRequest:
    request: DeleteTopicsRequest = carried(
        DeleteTopicsRequest,
        version,
        topics=[DeleteTopicState(name=name) for name in names],
        topic_names=list(names),
        timeout_ms=timeout_ms,
    )
    return request


# --- create topics --------------------------------------------------------------------------------


def created_topics_are_described(prefix: str, version: int) -> Talk:
    yield create(
        topic(f"{prefix}plain"),
        topic(f"{prefix}three", 3, retention_ms="1000", cleanup_policy="compact,delete"),
        topic(f"{prefix}manual", manual={0: [1], 1: [1]}),
        topic(f"{prefix}half", manual={0: [1, 9]}),
        topic(f"{prefix}other-half", manual={0: [9, 1]}),
    )
    yield create()
    yield look_at(*(prefix + name for name in ("plain", "three", "manual", "half", "other-half")))


def created_topics_of_broker_defaults(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a", -1, -1), topic(f"{prefix}b", 2, -1))


def validated_topics_are_not_made(prefix: str, version: int) -> Talk:
    good = topic(f"{prefix}good", 2, segment_bytes="123456")
    wrong = topic(f"{prefix}bad", 2, segment_bytes="1")
    if version >= 1:
        yield CreateTopicsRequest(topics=[good, wrong], validate_only=True)
    yield look_at(f"{prefix}good", f"{prefix}bad")


def refused_names(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}one.two"), topic(f"{prefix}there"))
    yield create(
        topic(""),
        topic("."),
        topic(".."),
        topic("ü"),
        topic("a b"),
        topic("x" * 250),
        topic(f"{prefix}one_two"),
        topic(f"{prefix}there"),
        topic("__cluster_metadata"),
    )
    yield create(topic(f"{prefix}twice"), topic(f"{prefix}twice", 2), topic(f"{prefix}once"))
    yield create(topic("a/b", 0), topic("a/b", 1, 5), topic(f"{prefix}there", 0, 0))


def refused_numbers(prefix: str, version: int) -> Talk:
    yield create(
        topic(f"{prefix}a", 0),
        topic(f"{prefix}b", -2),
        topic(f"{prefix}c", 1, 0),
        topic(f"{prefix}d", 1, 2),
        topic(f"{prefix}e", 1, -3),
    )
    both = topic(f"{prefix}f", manual={0: [1]})
    yield create(CreatableTopic(**{**_fields(both), "num_partitions": 1}))


def _fields(struct: Any) -> dict[str, Any]:
    return {field.name: getattr(struct, field.name) for field in struct.fields}


def refused_assignments(prefix: str, version: int) -> Talk:
    yield create(
        topic(f"{prefix}a", manual={0: [1, 1]}),
        topic(f"{prefix}b", manual={0: [1], 1: [1, 2]}),
        topic(f"{prefix}c", manual={1: [1]}),
        topic(f"{prefix}d", manual={0: [1], 2: [1]}),
        topic(f"{prefix}e", manual={0: [1, 1], 1: [1, 2]}),
        topic("/", manual={0: [1, 1]}),
    )


def refused_configs(prefix: str, version: int) -> Talk:
    yield create(
        topic(f"{prefix}a", no_such="1"),
        topic(f"{prefix}b", retention_ms="soon"),
        topic(f"{prefix}c", retention_ms=None),
        topic(f"{prefix}d", cleanup_policy="shred"),
        topic(f"{prefix}e", min_insync_replicas="0"),
        topic(f"{prefix}f", min_compaction_lag_ms="9", max_compaction_lag_ms="8"),
        topic(f"{prefix}g", retention_ms=None, segment_ms=None),
        topic(f"{prefix}h", remote_storage_enable="true"),
    )


def creators_who_do_not_wait(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a"), topic(f"{prefix}b", 0), timeout_ms=0)
    yield create(topic(f"{prefix}c"), timeout_ms=-1)


# --- create partitions ----------------------------------------------------------------------------


def grow(name: str, count: int, manual: list[list[int]] | None = None) -> CreatePartitionsTopic:
    """A topic that gets more partitions."""
    assignments = (
        None
        if manual is None
        else [CreatePartitionsAssignment(broker_ids=broker_ids) for broker_ids in manual]
    )
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def grown_topics(prefix: str, version: int) -> Talk:
    names = [f"{prefix}{n}" for n in range(4)]
    yield create(*map(topic, names))
    yield CreatePartitionsRequest(
        topics=[
            grow(names[0], 3),
            grow(names[1], 2, [[1]]),
            grow(names[2], 1),
            grow(names[3], 0),
            grow(f"{prefix}none", 3),
        ],
        timeout_ms=10_000,
    )
    yield CreatePartitionsRequest(
        topics=[grow(names[0], 4), grow(names[0], 5), grow(names[1], 3)], timeout_ms=10_000
    )
    yield CreatePartitionsRequest(topics=[grow(names[2], 4)], timeout_ms=0)
    yield look_at(*names[:2])


def refused_partitions(prefix: str, version: int) -> Talk:
    name = f"{prefix}a"
    half = f"{prefix}half"
    yield create(topic(name), topic(half, manual={0: [1, 9]}))
    wanted: list[tuple[int, list[list[int]]]] = [
        (2, [[2]]),
        (3, [[1]]),
        (2, [[]]),
        (2, [[1, 1]]),
        (3, [[1], []]),
        (3, [[7, 8], [9]]),
        (1, [[1]]),
        (2, []),
    ]
    for count, manual in wanted:
        yield CreatePartitionsRequest(topics=[grow(name, count, manual)], timeout_ms=10_000)
    yield CreatePartitionsRequest(topics=[grow(half, 2)], timeout_ms=10_000)
    yield CreatePartitionsRequest(topics=[grow(half, 2, [[1]])], timeout_ms=10_000)
    yield CreatePartitionsRequest(topics=[grow(name, 5)], timeout_ms=10_000, validate_only=True)
    yield CreatePartitionsRequest(topics=[grow(name, 1)], timeout_ms=0, validate_only=True)
    yield look_at(name)


# --- delete topics --------------------------------------------------------------------------------


def deleted_topics(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a"), topic(f"{prefix}b"), topic(f"{prefix}c"))
    yield _delete(version, f"{prefix}a", f"{prefix}none", "", "a/b")
    yield _delete(version, f"{prefix}b", f"{prefix}b")
    yield _delete(version)
    yield _delete(version, f"{prefix}c", f"{prefix}none", timeout_ms=0)
    yield look_at(f"{prefix}a", f"{prefix}b")


def topics_deleted_by_id(prefix: str, version: int) -> Talk:
    if version < 6:
        return
    created = yield create(topic(f"{prefix}a"), topic(f"{prefix}b"))
    ids = [result.topic_id for result in created.topics]
    for topics in (
        [DeleteTopicState(name=f"{prefix}a", topic_id=ids[0])],
        [DeleteTopicState(topic_id=UNKNOWN_ID), DeleteTopicState(topic_id=ids[0])],
        [DeleteTopicState(topic_id=ids[1]), DeleteTopicState(name=f"{prefix}a")],
    ):
        yield DeleteTopicsRequest(topics=topics, timeout_ms=10_000)


# --- metadata -------------------------------------------------------------------------------------


def topics_looked_at(prefix: str, version: int) -> Talk:
    yield create(topic(f"{prefix}a", 3), topic(f"{prefix}half", manual={0: [9, 1], 1: [1, 9]}))
    yield _metadata(version, [f"{prefix}a", f"{prefix}half", f"{prefix}a"])
    yield _metadata(version, [])
    if version >= 1:
        yield _metadata(version, None)
    yield _metadata(
        version,
        [f"{prefix}a"],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )


def topics_that_are_not_there(prefix: str, version: int) -> Talk:
    if version < 4:  # older versions always create what is missing
        return
    names = [f"{prefix}none", "a/b", "", "x" * 250]
    yield _metadata(version, names)
    yield _metadata(version, names, include_topic_authorized_operations=True)


def topics_looked_at_by_id(prefix: str, version: int) -> Talk:
    if version < 10:
        return
    created = yield create(topic(f"{prefix}a"), topic(f"{prefix}b"))
    ids = [result.topic_id for result in created.topics]
    known = MetadataRequestTopic(topic_id=ids[0], name=None)
    for topics in (
        [known],
        [MetadataRequestTopic(topic_id=UNKNOWN_ID, name=None), known],
        [MetadataRequestTopic(name=f"{prefix}b"), known],
        [MetadataRequestTopic(topic_id=ids[0], name=f"{prefix}b")],
        [MetadataRequestTopic(name=f"{prefix}b")],
    ):
        if version >= 12 or all(asked.name is not None for asked in topics):
            yield _metadata(version, None, topics=topics)


def illegal_topics_are_not_made_by_asking(prefix: str, version: int) -> Talk:
    yield _metadata(version, ["a/b"], allow_auto_topic_creation=True)


EXCHANGES = [
    *(
        Exchange(CreateTopicsRequest, build)
        for build in (
            created_topics_are_described,
            created_topics_of_broker_defaults,
            validated_topics_are_not_made,
            refused_names,
            refused_numbers,
            refused_assignments,
            refused_configs,
            creators_who_do_not_wait,
        )
    ),
    *(Exchange(CreatePartitionsRequest, build) for build in (grown_topics, refused_partitions)),
    *(Exchange(DeleteTopicsRequest, build) for build in (deleted_topics, topics_deleted_by_id)),
    *(
        Exchange(MetadataRequest, build)
        for build in (
            topics_looked_at,
            topics_that_are_not_there,
            topics_looked_at_by_id,
            illegal_topics_are_not_made_by_asking,
        )
    ),
]
