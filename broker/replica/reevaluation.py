"""Which event re-evaluates what, as a table: the rule that keeps a partition from getting stuck.

Every result below depends on several inputs, and each input changes by some event. If one event is
missing from the table, a result goes stale when nothing else happens afterwards: the ISR never
expands, or the high watermark stands still and acks=all waits for its timeout. So every event that
can change a result lists it here, and `Partition` does nothing but follow the table.

The inputs of each result:

    ISR_EXPANSION       a follower's fetch offset, the ISR, a proposal in flight, live brokers
    ISR_SHRINK          the time since a follower was caught up, a proposal in flight
    HIGH_WATERMARK      log end offsets, the maximal ISR, live brokers, min.insync.replicas, how
                        far the log is flushed if `flush.messages` requires it, and the time since
                        a follower outside of the ISR was caught up
    DELAYED_OPERATIONS  the high watermark and how far the log is flushed (DelayedProduce), the log
                        start offsets of live replicas (DelayedDeleteRecords), whether this broker
                        leads
    FOLLOWER_FETCHES    the log end offset, the leader epoch
    CONSUMER_FETCHES    the high watermark, the leader epoch; they also report the log start offset
    LOG_START           the log start offset, which retention moves in a thread without an event

Time is an input without an event of its own. Therefore a timer re-evaluates everything every half
of `replica.lag.time.max.ms`. It is also the safety net: what it finds to do although time is not
the reason is a missed wake-up. It is done then, logged as a warning and counted
(`ReplicaEnvironment.num_missed_wakeups`); tests assert that the count is zero.
"""

from enum import Enum, auto
from typing import Final


class Result(Enum):
    """What is derived from the state of a partition."""

    ISR_EXPANSION = auto()
    """Only a fetch shows that a follower is alive and follows, so it joins the ISR during one of
    its fetches. Fetch sessions skip partitions that have not changed: outside of a fetch this
    makes them read the partition at the follower's next one."""
    ISR_SHRINK = auto()
    HIGH_WATERMARK = auto()
    """If it advances, that is an event in itself."""
    DELAYED_OPERATIONS = auto()
    FOLLOWER_FETCHES = auto()
    CONSUMER_FETCHES = auto()
    """Also lets the sessions of followers report the high watermark and the log start offset."""
    LOG_START = auto()


class Event(Enum):
    """What changes the state of a partition."""

    APPEND = auto()
    FLUSHED = auto()
    """A group commit has ended (`flush.messages`)."""
    FOLLOWER_FETCH = auto()
    FOLLOWER_LOG_END = auto()
    """A follower has fetched from another offset than before."""
    FOLLOWER_LOG_START = auto()
    """A follower has reported another log start offset than before."""
    HIGH_WATERMARK = auto()
    LOG_START = auto()
    ISR_ACCEPTED = auto()
    ISR_REFUSED = auto()
    LIVE_BROKERS = auto()
    """A broker has died or returned, according to UpdateMetadata."""
    LEADER_EPOCH = auto()
    REMOVED = auto()
    """This broker has no replica of the partition any more, or its log directory has failed."""
    LOG_REPLACED = auto()
    """The replica has moved to another log directory."""
    CONFIG = auto()
    """Settings have changed, such as `min.insync.replicas`."""
    TIMER = auto()


REEVALUATION: Final[dict[Event, tuple[Result, ...]]] = {
    Event.APPEND: (Result.FOLLOWER_FETCHES, Result.HIGH_WATERMARK),
    Event.FLUSHED: (Result.HIGH_WATERMARK, Result.DELAYED_OPERATIONS),
    Event.FOLLOWER_FETCH: (Result.ISR_EXPANSION,),
    Event.FOLLOWER_LOG_END: (Result.HIGH_WATERMARK,),
    Event.FOLLOWER_LOG_START: (Result.DELAYED_OPERATIONS,),
    Event.HIGH_WATERMARK: (Result.DELAYED_OPERATIONS, Result.CONSUMER_FETCHES),
    Event.LOG_START: (Result.DELAYED_OPERATIONS, Result.CONSUMER_FETCHES),
    Event.ISR_ACCEPTED: (Result.HIGH_WATERMARK, Result.DELAYED_OPERATIONS, Result.ISR_EXPANSION),
    Event.ISR_REFUSED: (Result.HIGH_WATERMARK, Result.ISR_EXPANSION),
    Event.LIVE_BROKERS: (Result.HIGH_WATERMARK, Result.DELAYED_OPERATIONS, Result.ISR_EXPANSION),
    Event.LEADER_EPOCH: (
        Result.HIGH_WATERMARK,
        Result.DELAYED_OPERATIONS,
        Result.FOLLOWER_FETCHES,
        Result.CONSUMER_FETCHES,
    ),
    Event.REMOVED: (
        Result.DELAYED_OPERATIONS,
        Result.FOLLOWER_FETCHES,
        Result.CONSUMER_FETCHES,
    ),
    Event.LOG_REPLACED: (
        Result.DELAYED_OPERATIONS,
        Result.FOLLOWER_FETCHES,
        Result.CONSUMER_FETCHES,
    ),
    Event.CONFIG: (Result.HIGH_WATERMARK, Result.DELAYED_OPERATIONS),
    Event.TIMER: (
        Result.LOG_START,
        Result.ISR_SHRINK,
        Result.HIGH_WATERMARK,
        Result.DELAYED_OPERATIONS,
        Result.ISR_EXPANSION,
        Result.FOLLOWER_FETCHES,
        Result.CONSUMER_FETCHES,
    ),
}
"""Results are re-evaluated from left to right."""
