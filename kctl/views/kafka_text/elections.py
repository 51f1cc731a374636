"""The output of kafka-leader-election."""

from collections.abc import Iterator, Sequence

from broker.errors import ErrorCode
from kctl.model.elections import Election, ElectionType
from kctl.views.kafka_text.java_maps import hash_map_order
from kctl.views.kafka_text.java_order import partition_hash


def election_lines(election_type: ElectionType, elections: Sequence[Election]) -> Iterator[str]:
    """The lines until the tool fails, if it does; partitions in the order of Java's sets."""
    kind = election_type.name
    by_partition = dict(elections)
    ordered = hash_map_order(by_partition, partition_hash)
    done = [tp for tp in ordered if not by_partition[tp].error]
    needless = [tp for tp in ordered if by_partition[tp].error is ErrorCode.ELECTION_NOT_NEEDED]
    if done:
        names = ", ".join(map(str, done))
        yield f"Successfully completed leader election ({kind}) for partitions {names}"
    if needless:
        names = ", ".join(map(str, needless))
        yield f"Valid replica already elected for partitions {names}"
    for partition in ordered:
        outcome = by_partition[partition]
        if outcome.error and partition not in needless:
            reason = (
                f"org.apache.kafka.common.errors.{_java_name(outcome.error)}: {outcome.message}"
            )
            yield f"Error completing leader election ({kind}) for partition: {partition}: {reason}"


def failure_message(failed: int) -> str:
    """The tool's message on stderr if some elections failed."""
    return f"{failed} replica(s) could not be elected"


def _java_name(code: ErrorCode) -> str:
    """The name of the Java exception, derived from the name of the code."""
    return "".join(word.capitalize() for word in code.name.split("_")) + "Exception"
