"""Short descriptions of Kafka's znodes.

Passwords, including salted SCRAM credentials, and the secrets of tokens are masked. Data that Kafka
could not read is reported as such, and never quoted.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from broker.metadata.znodes.acls import ResourceZnode
from broker.metadata.znodes.admin import PreferredReplicaElectionZnode, ReassignPartitionsZnode
from broker.metadata.znodes.brokers import BrokerIdZnode
from broker.metadata.znodes.cluster import ClusterIdZnode, FeatureZnode, ProducerIdBlockZnode
from broker.metadata.znodes.configs import ConfigChangeZnode, ConfigEntityZnode
from broker.metadata.znodes.consumers import ConsumerIdZnode, ConsumerOffsetZnode
from broker.metadata.znodes.controller import ControllerEpochZnode, ControllerZnode
from broker.metadata.znodes.json_text import MalformedZnode
from broker.metadata.znodes.tokens import DelegationTokenZnode
from broker.metadata.znodes.topics import PartitionStateZnode, TopicZnode
from broker.model import TopicPartition
from kctl.model.znodes import Explained

HIDDEN: Final = "*****"
UNREADABLE: Final = "not valid Kafka data"
_SECRET_KEY: Final = re.compile(r"password|hmac|secret|^SCRAM-|jaas", re.IGNORECASE)

Match = re.Match[str]
Summary = Callable[[Match, bytes | None], str]


def explain(path: str, data: bytes | None) -> Explained:
    """Kind and contents of the znode at `path`."""
    value = _hidden(_value(data))
    for pattern, kind, summary in _KINDS:
        if match := pattern.fullmatch(path):
            try:
                return Explained(kind, summary(match, data), value)
            except MalformedZnode:  # Kafka creates some nodes before it writes data
                return Explained(kind, UNREADABLE if data else "", value)
    return Explained("", "" if data is None else _short(value), value)


def _value(data: bytes | None) -> Any:
    """JSON, else text, else bytes in hexadecimal."""
    if data is None:
        return None
    try:
        return json.loads(data)
    except ValueError:
        text = data.decode(errors="replace")
        return text if text.isprintable() and "\ufffd" not in text else f"0x{data.hex()}"


def _hidden(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _hidden(inner, str(name)) for name, inner in value.items()}
    if isinstance(value, list):
        return [_hidden(inner, key) for inner in value]
    return HIDDEN if _SECRET_KEY.search(key) else value


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _broker(match: Match, data: bytes | None) -> str:
    found = BrokerIdZnode.decode(int(match["id"]), data)
    rack = f", rack {found.rack}" if found.rack else ""
    return ", ".join(map(str, found.endpoints)) + rack


def _topic(match: Match, data: bytes | None) -> str:
    found = TopicZnode.decode(match["topic"], data)
    moving = any(one.adding_replicas or one.removing_replicas for one in found.assignment.values())
    replicas = {len(one.replicas) for one in found.assignment.values()}
    copies = "-".join(map(str, sorted({min(replicas), max(replicas)}))) if replicas else "0"
    words = [f"{_count(len(found.assignment), 'partition')}, {_count_text(copies, 'replica')} each"]
    words += [f"id {found.topic_id}"] if found.topic_id else []
    return ", ".join(words + ["being reassigned"] * moving)


def _count(number: int, noun: str) -> str:
    return _count_text(str(number), noun)


def _count_text(number: str, noun: str) -> str:
    return f"{number} {noun}" if number == "1" else f"{number} {noun}s"


def _partition_state(match: Match, data: bytes | None) -> str:
    place = TopicPartition(match["topic"], int(match["partition"]))
    found = PartitionStateZnode.decode(place, data)
    leader = "no leader" if found.leader < 0 else f"leader {found.leader}"
    isr = ",".join(map(str, found.isr))
    return f"{leader}, isr {isr}, leader epoch {found.leader_epoch}" + (
        ", recovering" if found.is_recovering else ""
    )


def _config(match: Match, data: bytes | None) -> str:
    found = _hidden(ConfigEntityZnode.decode(match[0], data))
    return ", ".join(f"{key}={value}" for key, value in found.items()) or "no configs"


def _controller(_: Match, data: bytes | None) -> str:
    return f"broker {ControllerZnode.decode(data).broker_id}"


def _feature(_: Match, data: bytes | None) -> str:
    found = FeatureZnode.decode(data)
    levels = [f"{name}={level}" for name, level in found.features.items()]
    return ", ".join(["enabled" if found.is_enabled else "disabled", *levels])


def _producer_ids(_: Match, data: bytes | None) -> str:
    found = ProducerIdBlockZnode.decode(data)
    return f"{found.first_producer_id} to {found.last_producer_id} for broker {found.broker_id}"


def _acls(match: Match, data: bytes | None) -> str:
    return "; ".join(
        f"{acl.principal} {acl.permission_type.name} {acl.operation.name} {acl.host}"
        for acl in ResourceZnode.decode(match[0], data)
    )


def _token(match: Match, data: bytes | None) -> str:
    DelegationTokenZnode.decode(match["token"], data)
    return HIDDEN


def _member(match: Match, data: bytes | None) -> str:
    found = ConsumerIdZnode.decode(match[0], data)
    threads = [f"{topic} ({count})" for topic, count in found.subscription.items()]
    return f"{found.pattern}: {', '.join(threads)}"


def _elections(_: Match, data: bytes | None) -> str:
    return ", ".join(map(str, PreferredReplicaElectionZnode.decode(data)))


def _reassignments(_: Match, data: bytes | None) -> str:
    return ", ".join(map(str, ReassignPartitionsZnode.decode(data)))


def _offset(match: Match, data: bytes | None) -> str:
    return str(ConsumerOffsetZnode.decode(match[0], data))


def _text(_: Match, data: bytes | None) -> str:
    return (data or b"").decode(errors="replace")


_TABLE: Final[dict[str, tuple[str, Summary]]] = {
    r"/brokers/ids/(?P<id>\d+)": ("broker", _broker),
    r"/brokers/topics/(?P<topic>[^/]+)": ("topic", _topic),
    r"/brokers/topics/(?P<topic>[^/]+)/partitions/(?P<partition>\d+)/state": (
        "partition state",
        _partition_state,
    ),
    r"/config/changes/[^/]+": ("config change", lambda _, data: ConfigChangeZnode.decode(data)),
    r"/config/(?:topics|brokers|clients|users|ips)/.+(?<!/clients)": ("config", _config),
    r"/controller": ("controller", _controller),
    r"/controller_epoch": (
        "controller epoch",
        lambda _, data: str(ControllerEpochZnode.decode(data)),
    ),
    r"/cluster/id": ("cluster id", lambda _, data: ClusterIdZnode.decode(data)),
    r"/feature": ("features", _feature),
    r"/latest_producer_id_block": ("producer ids", _producer_ids),
    r"/kafka-acl/[^/]+/.+|/kafka-acl-extended/[^/]+/[^/]+/.+": ("acls", _acls),
    r"/delegation_token/tokens/(?P<token>.+)": ("delegation token", _token),
    r"/consumers/[^/]+/ids/[^/]+": ("old consumer", _member),
    r"/consumers/[^/]+/owners/[^/]+/\d+": ("owner", _text),
    r"/consumers/[^/]+/offsets/[^/]+/\d+": ("old offset", _offset),
    r"/admin/delete_topics/[^/]+": ("topic deletion", lambda _, __: "to be deleted"),
    r"/admin/preferred_replica_election": ("elections", _elections),
    r"/admin/reassign_partitions": ("reassignments", _reassignments),
}
_KINDS: Final = [(re.compile(pattern), *rest) for pattern, rest in _TABLE.items()]
