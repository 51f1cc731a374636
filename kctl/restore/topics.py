"""The topic to restore to: created with the exported configs, which apply after the import.

While records are written, nothing may remove or change them: records that are older than its
retention must not disappear, compaction must not run ahead, and timestamps must be those of the
export. These configs are replaced by the exported ones at the end. A topic that was left with them
by a killed import is recognized by them.
"""

from collections.abc import Mapping
from typing import Any, Final

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.configs import alter_configs
from kctl.admin.connection import ask
from kctl.admin.describe_topics import topic_configs
from kctl.admin.log_offsets import log_ends, log_starts
from kctl.admin.topics import create_topics, find_topics
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.model.configs import Change, Entity, EntityType, Operation
from kctl.model.topics import NewTopic, Topic
from kctl.restore.exports import SourceTopic
from kctl.views.outcomes import raise_failures

_TIMESTAMP_TYPE: Final = "message.timestamp.type"
_DURING: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    _TIMESTAMP_TYPE: "CreateTime",
}
_LARGEST: Final = str(2**63 - 1)


def configs_during_import(configs: Mapping[str, str]) -> dict[str, str]:
    """The configs of a topic while records are written to it."""
    limits = {
        name: _LARGEST
        for name in configs
        if name.startswith("message.timestamp.") and name.endswith(".max.ms")
    }
    return {**configs, **limits, **_DURING}


def exported_configs(topic: SourceTopic) -> dict[str, str]:
    """The topic's own configs when it was exported; empty if they are not known."""
    stored = (topic.state or {}).get("configs") or {}
    return {name: value for name, value in stored.items() if value is not None}


def find_topic(session: Session, name: str) -> Topic | None:
    """The topic; None if it does not exist."""
    found = ask(session, lambda client: find_topics(client, [name]))
    return found[0] if found else None


def create_topic(
    session: Session,
    source: SourceTopic,
    name: str,
    replication_factor: int | None,
    configs: Mapping[str, str],
) -> None:
    """Create the topic with as many partitions as the exported one."""
    stored = (source.state or {}).get("replication_factor")
    new = NewTopic(
        name,
        num_partitions=source.num_partitions,
        replication_factor=replication_factor or stored,
        configs=configs_during_import(configs),
    )
    outcomes = ask(
        session,
        lambda client: create_topics(client, [new], timeout_s=session.timeout),
        check=f"kctl topics describe {name}",
    )
    raise_failures(outcomes, "topic")


def check_existing(session: Session, source: SourceTopic, topic: Topic) -> None:
    """CliError if the records cannot be restored to this topic as they were."""
    if len(topic.partitions) < source.num_partitions:
        raise CliError(
            f"topic {topic.name} has {len(topic.partitions)} partitions, the exported one "
            f"{source.num_partitions}",
            f"kctl topics alter {topic.name} --partitions {source.num_partitions}",
        )
    kind = _all_configs(session, topic).get(_TIMESTAMP_TYPE)
    if kind == "LogAppendTime":
        raise CliError(
            f"topic {topic.name} has {_TIMESTAMP_TYPE}=LogAppendTime, so the timestamps of the "
            "records would be lost",
            f"kctl configs alter topic {topic.name} --set {_TIMESTAMP_TYPE}=CreateTime",
        )


def is_being_imported(session: Session, topic: Topic, configs: Mapping[str, str]) -> bool:
    """Whether an import has created the topic and has not finished: its configs are those."""
    return own_configs(session, topic) == configs_during_import(configs)


def finish_topic(session: Session, name: str, configs: Mapping[str, str]) -> None:
    """Replace the configs of the import by the exported ones; can be repeated."""
    during = configs_during_import(configs)
    changes = [
        Change(each, Operation.SET, configs[each])
        if each in configs
        else Change(each, Operation.DELETE)
        for each in during
        if configs.get(each) != during[each]
    ]
    entity = Entity(EntityType.TOPICS, name)
    if changes:
        outcomes = ask(
            session,
            lambda client: alter_configs(client, {entity: changes}),
            check=f"kctl configs describe topic:{name}",
        )
        raise_failures(outcomes, "topic")


def has_records(session: Session, topic: Topic) -> bool:
    """Whether any partition of the topic holds records."""
    partitions = [TopicPartition(topic.name, each.id) for each in topic.partitions]

    async def bounds(client: Client) -> tuple[dict[Any, int], dict[Any, int]]:
        return await log_starts(client, partitions), await log_ends(client, partitions)

    starts, ends = ask(session, bounds)
    return any(ends.get(each, 0) > starts.get(each, 0) for each in partitions)


def own_configs(session: Session, topic: Topic) -> dict[str, str]:
    """The configs set on the topic itself."""
    own = Entity(EntityType.TOPICS, topic.name).own_source
    found = ask(session, lambda client: topic_configs(client, [topic]))[topic.name]
    return {
        each.name: each.value for each in found if each.source == own and each.value is not None
    }


def _all_configs(session: Session, topic: Topic) -> dict[str, str | None]:
    found = ask(session, lambda client: topic_configs(client, [topic]))[topic.name]
    return {each.name: each.value for each in found}
