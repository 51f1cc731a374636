"""The state of a broker, as Kafka numbers it."""

from enum import IntEnum


class BrokerState(IntEnum):
    """Kafka's broker states, by their number in the metric BrokerState."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7
