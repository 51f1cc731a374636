"""Where to reset the offsets of a group: the scenarios of kafka-consumer-groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.model import TopicPartition
from broker.net.client import Client
from kctl.admin.log_offsets import log_ends
from kctl.admin.positions import resolve_positions
from kctl.cli.errors import CliError
from kctl.model.offsets import Anchor, Position
from kctl.plans.offset_resets import current_or_end, shifted


@dataclass(frozen=True)
class Scenario:
    """The reset scenario; exactly one field is set."""

    position: Position | None = None
    to_current: bool = False
    shift_by: int | None = None
    from_file: str | None = None
    to_group: str | None = None


async def wanted_offsets(
    client: Client,
    places: Sequence[TopicPartition],
    scenario: Scenario,
    committed: Mapping[TopicPartition, int],
    others: Mapping[TopicPartition, int] | None,
) -> Mapping[TopicPartition, int]:
    """The new offset of each partition, not yet limited to its log; not for `from_file`.

    `others` are the offsets of the group `to_group`.
    """
    if scenario.position and scenario.position.anchor is Anchor.OFFSET:
        return dict.fromkeys(places, scenario.position.number)
    if scenario.position:
        return (await resolve_positions(client, places, [scenario.position]))[0]
    if scenario.shift_by is not None:
        try:
            return shifted(places, committed, scenario.shift_by)
        except ValueError as error:
            raise CliError(str(error), "use --topic to select other partitions") from error
    if others is not None:
        return {place: others[place] for place in places if place in others}
    return current_or_end(places, committed, await log_ends(client, places))
