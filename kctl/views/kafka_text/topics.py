"""The output of kafka-topics."""

from collections.abc import Iterator, Mapping, Sequence

from kctl.model.configs import Config
from kctl.model.topics import Partition, Topic
from kctl.views.kafka_text.java_maps import names_in_map_order

COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_')"
    " could collide. To avoid issues it is best to use either, but not both."
)


def creation_lines(name: str, *, created: bool) -> Iterator[str]:
    """The lines of `--create` until it fails, if it does."""
    if "." in name or "_" in name:
        yield COLLISION_WARNING
    if created:
        yield f"Created topic {name}."


def error_line(message: str) -> str:
    """The line of a failed action."""
    return f"Error while executing topic command : {message}"


def missing_line(requested: str) -> str:
    """The line for a pattern that matches no topic; the tool prints Java's Optional."""
    return error_line(f"Topic 'Optional[{requested}]' does not exist as expected")


def list_lines(names: Sequence[str]) -> list[str]:
    """The lines of `--list`; an empty one if there are no topics."""
    return list(names) or [""]


def in_tool_order(topics: Sequence[Topic]) -> list[Topic]:
    """Topics in the order of `--describe`: that of a Java map."""
    by_name = {topic.name: topic for topic in topics}
    return [by_name[name] for name in names_in_map_order(by_name, capacity=len(by_name))]


def topic_line(topic: Topic, configs: Sequence[Config]) -> str:
    """The line of a topic."""
    return "\t".join(
        [
            f"Topic: {topic.name}",
            *([f"TopicId: {topic.topic_id}"] if topic.topic_id else []),
            f"PartitionCount: {len(topic.partitions)}",
            f"ReplicationFactor: {topic.replication_factor}",
            f"Configs: {_overrides(configs)}",
        ]
    )


def partition_line(topic: Topic, partition: Partition) -> str:
    """The line of a partition. Only KRaft clusters have eligible leader replicas."""
    moves = []
    if partition.adding is not None:
        moves.append(f"Adding Replicas: {_joined(partition.adding)}")
        moves.append(f"Removing Replicas: {_joined(partition.removing or ())}")
    leader = "none" if partition.leader is None else partition.leader
    return "\t".join(
        [
            "",
            f"Topic: {topic.name}",
            f"Partition: {partition.id}",
            f"Leader: {leader}",
            f"Replicas: {_joined(partition.replicas)}",
            f"Isr: {_joined(partition.isr)}",
            *moves,
            "Elr: N/A",
            "LastKnownElr: N/A",
        ]
    )


def description_lines(
    topics: Sequence[Topic], configs: Mapping[str, Sequence[Config]]
) -> Iterator[str]:
    """The lines of `--describe`."""
    for topic in in_tool_order(topics):
        yield topic_line(topic, configs[topic.name])
        yield from (partition_line(topic, partition) for partition in topic.partitions)


def override_lines(
    topics: Sequence[Topic], configs: Mapping[str, Sequence[Config]]
) -> Iterator[str]:
    """The lines of `--describe --topics-with-overrides`."""
    for topic in in_tool_order(topics):
        if any(not config.is_default for config in configs[topic.name]):
            yield topic_line(topic, configs[topic.name])


def _overrides(configs: Sequence[Config]) -> str:
    by_name = {config.name: config for config in configs}
    ordered = (by_name[name] for name in names_in_map_order(by_name))
    return ",".join(f"{config.name}={config.value}" for config in ordered if not config.is_default)


def _joined(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))
