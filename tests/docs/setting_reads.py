"""Which settings the broker's code reads, found in its syntax trees.

A setting is read if code outside `broker/config` takes its attribute (`config.num_partitions`), or
takes a property of BrokerConfig that is computed from it, or takes the topic setting that falls
back to it. Attributes have the names of Kafka's keys, which hardly anything else has; the few that
other objects share count only where they are taken from something called a config. Reads by a
computed name (`getattr`) are listed by hand; a test fails when another module begins to use them.
"""

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from broker.config import BrokerConfig, TopicConfig
from broker.config.topic import BROKER_KEYS
from broker.log.config import LogConfig
from broker.txn.config import TxnConfig

BROKER = Path(__file__).parents[2] / "broker"

COMPUTED: dict[str, frozenset[str]] = {
    "log/config.py": frozenset(known.name for known in fields(LogConfig) if known.init),
    "server/coordination.py": frozenset(known.name for known in fields(TxnConfig)),
    "server/stores.py": frozenset(
        f"zookeeper_ssl_{store}_{what}"
        for store in ("keystore", "truststore")
        for what in ("location", "type")
    ),
    "api/handlers/create_topics.py": frozenset(),  # shows settings, obeys none
}
"""Attributes read by a computed name, by module."""

_RECEIVERS = ("config", "broker", "static", "settings", "defaults", "rates", "old", "new")
"""Endings of the names of variables that hold settings."""
_AMBIGUOUS = frozenset({"broker_id", "node_id", "log_dir", "num_partitions", "compression_type"})
"""Names that other objects have too."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every module of the broker that could read a setting, with its syntax tree."""
    for path in BROKER.rglob("*.py"):
        name = path.relative_to(BROKER).as_posix()
        if not name.startswith(("config/", "protocol/")):
            yield name, ast.parse(path.read_text())


def computed_reads() -> set[str]:
    """The modules that take an attribute of a config by a computed name."""
    return {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and _identifier(node.args[0]) in ("config", "topic", "broker", "settings", "static")
    }


def attributes_read() -> frozenset[str]:
    """The attributes of BrokerConfig and TopicConfig that are read outside `broker/config`."""
    found = {
        node.attr
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        if node.attr not in _AMBIGUOUS or _identifier(node.value).endswith(_RECEIVERS)
    }
    return frozenset(found.union(*COMPUTED.values()))


def _identifier(node: ast.expr) -> str:
    """The last name of an expression: `config` of `services.config`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def properties(module: str, cls: str) -> dict[str, set[str]]:
    """The attributes that each property or method of a class takes from `self`."""
    tree = ast.parse((BROKER / "config" / module).read_text())
    body = next(n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == cls)
    return {
        function.name: {
            node.attr
            for node in ast.walk(function)
            if isinstance(node, ast.Attribute) and _identifier(node.value) == "self"
        }
        for function in body
        if isinstance(function, ast.FunctionDef)
    }


def keys_read() -> tuple[frozenset[str], frozenset[str]]:
    """The broker keys and the topic keys whose value reaches code outside `broker/config`."""
    read = attributes_read()
    topic = _with_properties(read, properties("topic.py", "TopicConfig"))
    topic_keys = {key for name, key in TopicConfig.attributes.items() if name in topic}
    fallbacks = {BROKER_KEYS[key].replace(".", "_") for key in topic_keys & BROKER_KEYS.keys()}
    derived = properties("broker.py", "BrokerConfig")
    by_topic = {"flush_ms", "retention_ms", "roll_ms", "roll_jitter_ms"}  # see topic_defaults
    by_topic |= {"timestamp_before_max_ms", "timestamp_after_max_ms"}
    broker = _with_properties(read | fallbacks | by_topic, derived)
    broker_keys = {key for name, key in BrokerConfig.attributes.items() if name in broker}
    return frozenset(broker_keys), frozenset(topic_keys)


def _with_properties(read: frozenset[str] | set[str], derived: dict[str, set[str]]) -> set[str]:
    """What is read, and, recursively, what the properties that are read take from `self`."""
    found, waiting = set(read), list(read)
    while waiting:
        more = derived.get(waiting.pop(), set()) - found
        found |= more
        waiting += more
    return found
