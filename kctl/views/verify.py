"""Reports of `kctl verify`."""

from collections.abc import Iterable, Mapping
from itertools import islice

from kctl.cli.tables import Column
from kctl.model.numbered import MAX_LISTED, Numbered


def _by_partition(counts: object) -> str:
    """Records of each partition: `0: 45, 1: 55`."""
    own = counts if isinstance(counts, Mapping) else {}
    return ", ".join(f"{number}: {count}" for number, count in own.items())


PRODUCE_COLUMNS = [
    Column("topic", "Topic"),
    Column("sent", "Sent"),
    Column("acked", "Acknowledged"),
    Column("failed", "Failed"),
    Column("first_error", "First error"),
    Column("records_per_s", "Records/s"),
    Column("partitions", "Partitions", format=_by_partition),
]

CONSUME_COLUMNS = [
    Column("topic", "Topic"),
    Column("result", "Result"),
    Column("records", "Records"),
    Column("distinct", "Distinct"),
    Column("missing", "Missing"),
    Column("duplicates", "Duplicates"),
    Column("foreign", "Not numbered"),
    Column("out_of_order", "Out of order"),
    Column("gaps", "Gaps"),
    Column("repeated", "Repeated"),
    Column("partitions", "Partitions", format=_by_partition),
]


def consume_report(topic: str, found: Numbered, partitions: Mapping[int, int]) -> dict[str, object]:
    """The result of reading a topic; lists have at most MAX_LISTED entries."""
    own = found.sequences
    return {
        "topic": topic,
        "result": "exact" if found.is_exact else "not exact",
        "records": sum(one.records for one in own.values()) + found.foreign,
        "distinct": sum(len(one.counts) - one.missing for one in own.values()),
        "missing": sum(one.missing for one in own.values()),
        "duplicates": sum(one.duplicates for one in own.values()),
        "foreign": found.foreign,
        "out_of_order": found.out_of_order,
        "gaps": _listed(
            _range(prefix, *gap) for prefix, one in sorted(own.items()) for gap in one.gaps()
        ),
        "repeated": _listed(
            _name(prefix, number)
            for prefix, one in sorted(own.items())
            for number in one.repeated()
        ),
        "partitions": {str(number): count for number, count in sorted(partitions.items())},
    }


def _listed(texts: Iterable[str]) -> list[str]:
    return list(islice(texts, MAX_LISTED))


def _range(prefix: str, first: int, last: int) -> str:
    return _name(prefix, first) if first == last else f"{_name(prefix, first)}-{last}"


def _name(prefix: str, number: int) -> str:
    return f"{prefix}.{number}" if prefix else str(number)
