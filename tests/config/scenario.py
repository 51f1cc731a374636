"""A sequence of config requests that Kafka and this broker must answer in the same way.

The responses of Kafka 3.9.1 are in tests/golden/configs/scenario.jsonl, one line per step, recorded
by `python -m tests.config.record HOST:PORT` from a broker with only the settings STATIC.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from broker.protocol.messages import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
)

UNKNOWN, TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 0, 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3

T: Final = "kctl-config-scenario"
"""The topic of the scenario; it exists."""
ME: Final = "1"
"""The id of the broker."""
STATIC: Final = {
    "broker.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:49092",
    "zookeeper.connect": "127.0.0.1:48092",
    "log.dirs": "/data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}

Send = Callable[[Any], Awaitable[Any]]
"""Sends a request and returns the response."""
Resource = tuple[int, str, list[Any]]


def incremental(*resources: Resource, validate_only: bool = False) -> Any:
    """IncrementalAlterConfigs of resources with (key, operation, value)."""
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental_alter_configs.AlterableConfig(
                        name=key, config_operation=operation, value=value
                    )
                    for key, operation, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
    )


def legacy(*resources: Resource, validate_only: bool = False) -> Any:
    """AlterConfigs of resources with (key, value)."""
    return alter_configs.AlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    alter_configs.AlterableConfig(name=key, value=value) for key, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
    )


def describe(*resources: tuple[int, str, list[str] | None], synonyms: bool = True) -> Any:
    """DescribeConfigs of these keys of each resource."""
    return describe_configs.DescribeConfigsRequest(
        include_synonyms=synonyms,
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=keys
            )
            for kind, name, keys in resources
        ],
    )


def set_topic(key: str, value: str | None, operation: int = SET) -> Any:
    return incremental((TOPIC, T, [(key, operation, value)]))


def set_broker(key: str, value: str | None, operation: int = SET, name: str = ME) -> Any:
    return incremental((BROKER, name, [(key, operation, value)]))


KEYS: Final = ["cleanup.policy", "retention.ms", "segment.ms", "compression.type", "flush.ms"]

TOPIC_STEPS: Final = [
    describe((TOPIC, T, None)),
    describe((TOPIC, T, None), synonyms=False),
    describe((TOPIC, T, KEYS)),
    describe((TOPIC, T, [])),
    describe((TOPIC, T, ["no.such.key"])),
    describe((TOPIC, "kctl-no-such-topic", None)),
    describe((TOPIC, "", None)),
    describe((TOPIC, "..", None)),
    describe((TOPIC, "a b", None)),
    # valid
    set_topic("retention.ms", " 3600000 "),
    set_topic("cleanup.policy", "compact"),
    set_topic("min.cleanable.dirty.ratio", "0.25"),
    set_topic("preallocate", "TRUE"),
    describe((TOPIC, T, [*KEYS, "min.cleanable.dirty.ratio", "preallocate"])),
    set_topic("cleanup.policy", "delete", APPEND),
    set_topic("cleanup.policy", "delete,compact", APPEND),
    describe((TOPIC, T, KEYS)),
    set_topic("cleanup.policy", "compact", SUBTRACT),
    describe((TOPIC, T, KEYS)),
    set_topic("leader.replication.throttled.replicas", "0:1,1:1", APPEND),
    set_topic("leader.replication.throttled.replicas", "0:1", SUBTRACT),
    describe((TOPIC, T, ["leader.replication.throttled.replicas"])),
    set_topic("follower.replication.throttled.replicas", "*"),
    set_topic("follower.replication.throttled.replicas", None, DELETE),
    set_topic("segment.ms", None, DELETE),
    set_topic("message.format.version", "0.10.2"),
    set_topic("message.timestamp.difference.max.ms", "1000"),
    describe((TOPIC, T, None)),
    incremental((TOPIC, T, [("flush.ms", SET, "5"), ("retention.ms", DELETE, None)])),
    incremental((TOPIC, T, [("flush.ms", SET, "6")]), validate_only=True),
    describe((TOPIC, T, KEYS)),
    # invalid
    set_topic("retention.ms", "abc"),
    set_topic("retention.ms", ""),
    set_topic("retention.ms", "1.5"),
    set_topic("retention.ms", "1_000"),
    set_topic("retention.ms", "9223372036854775808"),
    set_topic("retention.ms", "-2"),
    set_topic("segment.bytes", "13"),
    set_topic("segment.bytes", "2147483648"),
    set_topic("cleanup.policy", "shrink"),
    set_topic("cleanup.policy", "compact,shrink", APPEND),
    set_topic("cleanup.policy", "delete,,compact"),
    set_topic("compression.type", "brotli"),
    set_topic("compression.gzip.level", "0"),
    set_topic("compression.lz4.level", "18"),
    set_topic("compression.zstd.level", "23"),
    set_topic("preallocate", "yes"),
    set_topic("min.cleanable.dirty.ratio", "1.5"),
    set_topic("min.cleanable.dirty.ratio", "-0.5"),
    set_topic("min.cleanable.dirty.ratio", "half"),
    set_topic("message.timestamp.type", "createtime"),
    set_topic("message.format.version", "9.9"),
    set_topic("leader.replication.throttled.replicas", "1-2"),
    set_topic("min.insync.replicas", "0"),
    set_topic("no.such.key", "1"),
    set_topic("no.such.key", None, DELETE),
    set_topic("no.such.key", "1", APPEND),
    set_topic("retention.ms", "1", APPEND),
    set_topic("retention.ms", "1", SUBTRACT),
    set_topic("retention.ms", None),
    set_topic("retention.ms", "1", 9),
    set_topic("remote.storage.enable", "true"),
    set_topic("remote.log.copy.disable", "true"),
    set_topic("remote.log.delete.on.disable", "true"),
    incremental(
        (TOPIC, T, [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "8")])
    ),
    incremental((TOPIC, T, [("flush.ms", SET, "1"), ("flush.ms", SET, "2")])),
    incremental((TOPIC, T, [("flush.ms", SET, "1")]), (TOPIC, T, [("flush.ms", SET, "2")])),
    incremental((TOPIC, "", [("flush.ms", SET, "1")])),
    incremental((TOPIC, "kctl-no-such-topic", [("flush.ms", SET, "1")])),
    incremental((TOPIC, "a b", [("flush.ms", SET, "1")])),
    incremental((UNKNOWN, T, [("flush.ms", SET, "1")])),
    incremental((CLIENT_METRICS, "m", [("flush.ms", SET, "1")])),
    incremental((GROUP, "g", [("flush.ms", SET, "1")])),
    incremental(
        (TOPIC, T, [("flush.ms", SET, "7")]),
        (TOPIC, "kctl-no-such-topic", [("flush.ms", SET, "1")]),
        (BROKER, "77", [("log.cleaner.backoff.ms", SET, "1")]),
    ),
    describe((TOPIC, T, KEYS)),
    # AlterConfigs: settings that are not named are removed
    legacy((TOPIC, T, [("retention.ms", "1000")]), validate_only=True),
    legacy((TOPIC, T, [("retention.ms", "1000")])),
    describe((TOPIC, T, None)),
    legacy((TOPIC, T, [("retention.ms", "abc")])),
    legacy((TOPIC, T, [("no.such.key", "abc")])),
    legacy((TOPIC, T, [("retention.ms", None)])),
    legacy((TOPIC, T, [("retention.ms", "1"), ("retention.ms", "2")])),
    legacy((TOPIC, "", [])),
    legacy((TOPIC, "kctl-no-such-topic", [])),
    legacy((BROKER_LOGGER, ME, [("root", "INFO")])),
    legacy((UNKNOWN, "x", [])),
    legacy((GROUP, "x", [])),
    legacy((CLIENT_METRICS, "x", [])),
    legacy((TOPIC, T, [])),
    describe((TOPIC, T, KEYS)),
]

LOG_KEYS: Final = [
    "log.cleaner.backoff.ms",
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.roll.ms",
    "log.roll.hours",
    "broker.id",
    "node.id",
    "leader.replication.throttled.rate",
    "my.own.key",
    "listener.name.plaintext.max.connections",
]

BROKER_STEPS: Final = [
    describe((BROKER, ME, LOG_KEYS)),
    describe((BROKER, "", None)),
    describe((BROKER, "77", None)),
    describe((BROKER, "one", None)),
    describe((CLIENT_METRICS, "m", None)),
    describe((CLIENT_METRICS, "", None)),
    describe((UNKNOWN, "x", None)),
    describe((BROKER_LOGGER, "", None)),
    describe((BROKER_LOGGER, "77", None)),
    describe((BROKER_LOGGER, ME, ["no.such.logger"])),
    # valid
    set_broker("log.cleaner.backoff.ms", "14000"),
    set_broker("log.cleaner.backoff.ms", "13000", name=""),
    describe((BROKER, ME, LOG_KEYS), (BROKER, "", None), (BROKER, "", ["log.roll.ms"])),
    set_broker("log.retention.ms", "1209600000", name=""),
    describe((BROKER, ME, LOG_KEYS), (TOPIC, T, ["retention.ms"])),
    set_broker("log.roll.ms", "3600000"),
    describe((BROKER, ME, LOG_KEYS), (TOPIC, T, ["segment.ms"])),
    set_broker("leader.replication.throttled.rate", "1048576"),
    set_broker("my.own.key", "mine"),
    set_broker("listener.name.plaintext.max.connections", "100", name=""),
    describe((BROKER, ME, LOG_KEYS), (BROKER, "", None)),
    set_broker("log.cleanup.policy", "compact", APPEND, name=""),
    describe((BROKER, "", None), (TOPIC, T, ["cleanup.policy"])),
    set_broker("log.cleanup.policy", "delete", SUBTRACT, name=""),
    describe((BROKER, "", None), (TOPIC, T, ["cleanup.policy"])),
    incremental((BROKER, ME, [("num.io.threads", SET, "9")]), validate_only=True),
    # invalid
    set_broker("log.cleaner.backoff.ms", "abc"),
    set_broker("log.cleaner.backoff.ms", "-1"),
    set_broker("log.cleaner.backoff.ms", "abc", name=""),
    set_broker("leader.replication.throttled.rate", "-1"),
    set_broker("broker.id", "2"),
    set_broker("num.partitions", "3", name=""),
    set_broker("log.retention.hours", "3", name=""),
    set_broker("ssl.keystore.location", "/x"),
    set_broker("ssl.keystore.password", "x"),
    set_broker("ssl.client.auth", "none", name=""),
    set_broker("listener.name.plaintext.ssl.keystore.type", "PEM", name=""),
    set_broker("listener.name.plaintext.max.connections", "many"),
    set_broker("listener.name.plaintext.ssl.keystore.password", "x"),
    set_broker("listener.name.plaintext.ssl.keystore.password", "x", name=""),
    set_broker("num.io.threads", "100"),
    set_broker("num.io.threads", "1"),
    set_broker("num.io.threads", "0"),
    set_broker("log.cleaner.threads", "5"),
    set_broker("log.roll.ms", "0"),
    set_broker("log.retention.ms", "0"),
    set_broker("log.retention.ms", "0", name=""),
    set_broker("log.cleaner.dedupe.buffer.size", "10"),
    set_broker("max.connections.per.ip", "0"),
    set_broker("log.local.retention.ms", "604800001", name=""),
    set_broker("log.cleaner.backoff.ms", "1", APPEND),
    set_broker("no.such.key", "1", APPEND),
    set_broker("log.cleaner.backoff.ms", None),
    set_broker("log.cleaner.backoff.ms", "1", 9),
    set_broker("log.cleaner.backoff.ms", "1", name="77"),
    set_broker("log.cleaner.backoff.ms", "1", name="one"),
    legacy((BROKER, ME, [("log.cleaner.backoff.ms", "abc")])),
    legacy((BROKER, ME, [("broker.id", "2")])),
    legacy((BROKER, "77", [])),
    legacy((BROKER, "one", [])),
    # restore
    legacy((BROKER, ME, []), (BROKER, "", [])),
    describe((BROKER, ME, LOG_KEYS), (BROKER, "", None), (TOPIC, T, KEYS)),
]

LOGGER_STEPS: Final = [
    incremental((BROKER_LOGGER, ME, [("no.such.logger", SET, "DEBUG")])),
    incremental((BROKER_LOGGER, ME, [("root", SET, "LOUD")])),
    incremental((BROKER_LOGGER, ME, [("root", SET, "warn")])),
    incremental((BROKER_LOGGER, ME, [("root", DELETE, None)])),
    incremental((BROKER_LOGGER, ME, [("no.such.logger", DELETE, None)])),
    incremental((BROKER_LOGGER, ME, [("root", APPEND, "INFO")])),
    incremental((BROKER_LOGGER, ME, [("root", SUBTRACT, "INFO")])),
    incremental((BROKER_LOGGER, ME, [("root", SET, None)])),
    incremental((BROKER_LOGGER, ME, [("root", 9, "INFO")])),
    incremental((BROKER_LOGGER, "77", [("root", SET, "INFO")])),
    incremental((BROKER_LOGGER, "one", [("root", SET, "INFO")])),
    incremental((BROKER_LOGGER, ME, [("root", SET, "WARN")])),
    describe((BROKER_LOGGER, ME, ["root"])),
]

STEPS: Final = [*TOPIC_STEPS, *BROKER_STEPS, *LOGGER_STEPS]

EVERYTHING: Final = describe((BROKER, ME, None))
"""Describes every setting of a broker that has only STATIC."""


def plain(answer: Any) -> Any:
    """A response as JSON, with unordered lists sorted."""
    if isinstance(answer, describe_configs.DescribeConfigsResponse):
        return [_described(result) for result in answer.results]
    return [
        [r.resource_type, r.resource_name, r.error_code, r.error_message] for r in answer.responses
    ]


def _described(result: Any) -> Any:
    return {
        "resource": [result.resource_type, result.resource_name],
        "error": [result.error_code, result.error_message],
        "configs": {
            config.name: {
                "value": config.value,
                "read_only": config.read_only,
                "source": config.config_source,
                "sensitive": config.is_sensitive,
                "synonyms": [[s.name, s.value, s.source] for s in config.synonyms],
                "type": config.config_type,
            }
            for config in sorted(result.configs, key=lambda config: config.name)
        },
    }


async def play(
    send: Send, steps: Sequence[Any] = STEPS, expected: Sequence[Any] | None = None
) -> list[Any]:
    """Send the requests in order; returns the responses as JSON.

    Kafka's brokers learn of a change through ZooKeeper, shortly after its response. Therefore a
    description that differs from `expected` is requested again for some seconds.
    """
    answers = []
    for number, step in enumerate(steps):
        answer = plain(await send(step))
        deadline = time.monotonic() + SETTLES_WITHIN_S
        while expected and answer != expected[number] and time.monotonic() < deadline:
            if not isinstance(step, describe_configs.DescribeConfigsRequest):
                break
            await asyncio.sleep(0.05)
            answer = plain(await send(step))
        answers.append(answer)
    return answers


SETTLES_WITHIN_S: Final = 5
