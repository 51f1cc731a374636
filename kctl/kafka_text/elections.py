"""What kafka-leader-election prints."""

from collections.abc import Iterator, Sequence

from broker.errors import ErrorCode
from kctl.admin.elect_leaders import Election, ElectionType
from kctl.dump.java_order import partition_hash
from kctl.kafka_text.java_maps import hash_map_order


def election_lines(election_type: ElectionType, elections: Sequence[Election]) -> Iterator[str]:
    """The lines up to where the tool fails, if it does; partitions as Java's sets have them."""
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
    """What the tool says on stderr when some could not be elected."""
    return f"{failed} replica(s) could not be elected"


def _java_name(code: ErrorCode) -> str:
    """The name of Java's exception, which for these codes is made of the same words."""
    return "".join(word.capitalize() for word in code.name.split("_")) + "Exception"
