"""The output of kafka-streams-application-reset."""

from collections.abc import Iterator, Sequence

from kctl.model.lag import LogBounds
from kctl.model.offset_resets import NewOffset, Offsets
from kctl.views.kafka_text.java_maps import hash_map_order
from kctl.views.kafka_text.java_order import partition_hash


def range_lines(asked: Offsets, bounds: LogBounds) -> Iterator[str]:
    """The tool's notes on given offsets outside the log; start and end offset count as outside."""
    for place in hash_map_order(asked, partition_hash):
        offset, start, end = asked[place], bounds.starts[place], bounds.ends[place]
        if offset >= end:
            yield f"New offset ({offset}) is higher than latest offset. Value will be set to {end}"
        elif offset <= start:
            yield (
                f"New offset ({offset}) is lower than earliest offset. Value will be set to {start}"
            )


def reset_lines(
    application_id: str,
    input_topics: Sequence[str],
    intermediate_topics: Sequence[str],
    inputs: Sequence[NewOffset],
    intermediates: Sequence[NewOffset],
    internals: Sequence[str],
    range_notes: Sequence[str],
    *,
    inferred: bool,
    dry_run: bool,
) -> Iterator[str]:
    """What the tool of 3.9 prints."""
    if dry_run:
        yield (
            "----Dry run displays the actions which will be performed when running Streams Reset "
            "Tool----"
        )
    if input_topics:
        yield f"Reset-offsets for input topics [{', '.join(input_topics)}]"
    if intermediate_topics:
        yield f"Seek-to-end for intermediate topics [{', '.join(intermediate_topics)}]"
    whose = f"(for consumer group {application_id})"
    if inputs:
        yield f"Following input topics offsets will be reset to {whose}"
        yield from range_notes
        by_place = {new.place: new.new_offset for new in inputs}
        for place in hash_map_order(by_place, partition_hash):
            yield f"Topic: {place.topic} Partition: {place.partition} Offset: {by_place[place]}"
    if intermediates:
        yield f"Following intermediate topics offsets will be reset to end {whose}"
        yield from (f"Topic: {new.place.topic}" for new in intermediates)
    if input_topics or intermediate_topics:
        yield "Done."
    kind = "inferred" if inferred else "specified"
    yield f"Deleting {kind} internal topics [{', '.join(internals)}]"
    yield "Done."
