"""What a restore needs beside the records: topic configs, and committed offsets of groups."""

from collections.abc import Iterable, Mapping
from typing import Any

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.connection import ask
from kctl.admin.describe_topics import topic_configs
from kctl.admin.group_offsets import Offsets, committed_offsets
from kctl.admin.groups import list_groups
from kctl.admin.topics import find_topics
from kctl.cli.errors import CliError
from kctl.cli.options import Session
from kctl.model.configs import Entity, EntityType


def group_offsets(session: Session) -> dict[str, Offsets]:
    """The committed offsets of all consumer groups."""

    async def query(client: Client) -> dict[str, Offsets]:
        groups = [group.group_id for group in await list_groups(client)]
        return await committed_offsets(client, groups)

    return ask(session, query)


def topic_state(
    session: Session, topics: Iterable[str], groups: Mapping[str, Offsets] | None
) -> dict[str, Any]:
    """The manifest's fields `topics` and `groups`; groups are null if they were not saved."""
    names = sorted(set(topics))
    return {
        "topics": _topics(session, names),
        "groups": None
        if groups is None
        else {
            group: entries
            for group, offsets in sorted(groups.items())
            if (entries := _entries(offsets, set(names)))
        },
    }


def _entries(offsets: Offsets, topics: set[str]) -> list[dict[str, Any]]:
    return [
        {"topic": each.topic, "partition": each.partition, "offset": offset}
        for each, offset in sorted(offsets.items())
        if each.topic in topics
    ]


def committed_entries(document: Mapping[str, Any]) -> dict[str, dict[TopicPartition, int]]:
    """The inverse of what `topic_state` stores under `groups`."""
    return {
        group: {
            TopicPartition(each["topic"], each["partition"]): each["offset"] for each in entries
        }
        for group, entries in (document.get("groups") or {}).items()
    }


def _topics(session: Session, names: list[str]) -> dict[str, Any]:
    """Partitions, replication factor and own configs by topic; configs are null if not readable."""

    async def describe(client: Client) -> dict[str, Any]:
        return {
            topic.name: {
                "partitions": len(topic.partitions),
                "replication_factor": topic.replication_factor,
                "configs": None,
            }
            for topic in await find_topics(client, names)
        }

    async def own_configs(client: Client) -> dict[str, dict[str, str | None]]:
        found = await topic_configs(client, await find_topics(client, names))
        return {
            name: {
                config.name: config.value
                for config in configs
                if config.source == Entity(EntityType.TOPICS, name).own_source
                and not config.sensitive
            }
            for name, configs in found.items()
        }

    known = ask(session, describe)
    try:
        configs = ask(session, own_configs)
    except CliError as error:  # DescribeConfigs may not be allowed: records matter more
        session.out.note(f"topic configs are not saved: {error.message}")
        configs = {}
    return {name: {**fields, "configs": configs.get(name)} for name, fields in known.items()}
