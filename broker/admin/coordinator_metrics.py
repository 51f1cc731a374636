"""Metrics of the controller and of the coordinators of groups and transactions."""

from collections import Counter
from collections.abc import Iterator

from broker.admin.dialects import Metric, counter, gauge
from broker.api.context import Services
from broker.controller.controller_context import ControllerContext
from broker.controller.states import PartitionState
from broker.group.states import GroupState


def controller_metrics(services: Services) -> Iterator[Metric]:
    """Only the active controller counts; the others report zeros, as in Kafka."""
    context = services.controller.context
    is_active = int(context is not None)
    yield gauge("controller_kafkacontroller_activecontrollercount", "1: the controller.").add(
        is_active
    )
    for name, text, value in _gauges(context or ControllerContext()):
        yield gauge(f"controller_kafkacontroller_{name}", text).add(value)
    yield gauge("controller_controllereventmanager_eventqueuesize", "Queued events.").add(
        services.controller.num_queued_events
    )
    elections = 0 if context is None else context.num_elections
    unclean = 0 if context is None else context.num_unclean_elections
    name = "controller_controllerstats_leaderelectionrateandtimems"
    elected = counter(name, "Elected leaders.").add(elections)
    elected.jmx, elected.confluent = f"{name}_count", name
    yield elected
    yield counter(
        "controller_controllerstats_uncleanleaderelections", "Leaders from outside the ISR."
    ).add(unclean)


def _gauges(context: ControllerContext) -> list[tuple[str, str, int]]:
    assignments = {
        topic: dict(partitions) for topic, partitions in context.assignments.copy().items()
    }
    leaderships = context.leaderships.copy()
    offline = sum(
        state is not PartitionState.ONLINE
        for name, state in context.partition_states.copy().items()
        if name.topic not in context.topics_to_delete
    )
    imbalanced = sum(
        leadership.leader != assignments[name.topic][name.partition].replicas[0]
        for name, leadership in leaderships.items()
        if name.partition in assignments.get(name.topic, {})
        and name.topic not in context.topics_to_delete
    )
    return [
        ("offlinepartitionscount", "Partitions without a leader.", offline),
        ("preferredreplicaimbalancecount", "Not led by the preferred replica.", imbalanced),
        ("globaltopiccount", "Topics of the cluster.", len(assignments)),
        (
            "globalpartitioncount",
            "Partitions of the cluster.",
            sum(len(partitions) for partitions in assignments.values()),
        ),
        ("topicstodeletecount", "Topics being deleted.", len(context.topics_to_delete)),
    ]


def group_metrics(services: Services) -> Iterator[Metric]:
    """Groups that this broker coordinates, by state."""
    groups = list(services.groups.registry.groups.values())
    states = Counter(group.state for group in groups)
    stem = "coordinator_group_groupmetadatamanager_numgroups"
    yield gauge(stem, "Groups that this broker coordinates.").add(len(groups))
    for state in GroupState:
        yield gauge(f"{stem}{state.value.lower()}", f"Groups in state {state}.").add(states[state])


def load_metrics(services: Services) -> Iterator[Metric]:
    """How long the coordinators took to load partitions within the last minute."""
    for coordinator, times in (
        ("group", services.groups.registry.load_times),
        ("transaction", services.transactions.load_times),
    ):
        recent = times.recent_ms(services.clock.now_ms())
        stem = f"server_{coordinator}_coordinator_metrics_partition_load_time"
        yield gauge(f"{stem}_max", "Slowest load in milliseconds.").add(max(recent, default=0))
        average = sum(recent) / len(recent) if recent else 0
        yield gauge(f"{stem}_avg", "Average load in milliseconds.").add(average)
