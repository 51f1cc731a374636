"""Plans for throttles: throttled replicas, leaked throttles, restoring changes."""

from hypothesis import given
from hypothesis import strategies as st

from broker.model import TopicPartition
from kctl.model.configs import Change, Config, Entity, EntityType, Operation
from kctl.model.reassignments import Reassignment
from kctl.model.throttles import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    LOG_DIRS_RATE,
)
from kctl.plans.throttles import (
    brokers_of,
    clear_all_changes,
    deletions_of,
    endpoints_of,
    merged,
    rate_changes,
    restoring_changes,
    throttles_in,
    topic_changes,
)

T0, T10 = TopicPartition("t", 0), TopicPartition("t", 10)
TOPIC, BROKER = Entity(EntityType.TOPICS, "t"), Entity(EntityType.BROKERS, "1")


def config(name: str, value: str, source: str) -> Config:
    return Config(name, value, source, False, False, "string", (), None)


def test_throttled_replicas_are_sources_for_leaders_and_newcomers_for_followers() -> None:
    ends = endpoints_of({}, {T0: (2, 3), T10: (1, 3)}, {T0: (1, 2), T10: (1, 2)})
    leaders, followers = topic_changes(ends)[TOPIC]
    # Sorted as text, as Kafka's tool has it.
    assert leaders == Change(LEADER_REPLICAS, Operation.SET, "0:1,0:2,10:1,10:2")
    assert followers == Change(FOLLOWER_REPLICAS, Operation.SET, "0:3,10:3")
    assert brokers_of(ends) == [1, 2, 3]


def test_partition_that_moves_already_keeps_its_sources() -> None:
    moving = {T0: Reassignment(T0, (3, 1, 2), (3,), (1,))}
    ends = endpoints_of(moving, {T0: (2, 4)}, {T0: (3, 1, 2)})
    assert ends["t"][0].sources == {1, 2}
    assert ends["t"][0].destinations == {4}
    assert endpoints_of(moving, {}, {})["t"][0].destinations == {3}


def test_throttle_has_leaked_when_nothing_moves_that_it_could_be_for() -> None:
    configs = {
        BROKER: [
            config(LEADER_RATE, "5", "DYNAMIC_BROKER_CONFIG"),
            config(FOLLOWER_RATE, "9", "STATIC_BROKER_CONFIG"),
            config(LOG_DIRS_RATE, "", "DYNAMIC_BROKER_CONFIG"),
        ],
        TOPIC: [
            config(LEADER_REPLICAS, "*", "DYNAMIC_TOPIC_CONFIG"),
            config("retention.ms", "1", "DYNAMIC_TOPIC_CONFIG"),
        ],
    }
    leaked = [(one.config, one.leaked) for one in throttles_in(configs, {})]
    assert leaked == [(LEADER_RATE, True), (LEADER_REPLICAS, True)]
    other = TopicPartition("other", 0)
    elsewhere = {other: Reassignment(other, (1, 2), (2,), (1,))}
    assert [one.leaked for one in throttles_in(configs, elsewhere)] == [False, True]
    here = {T0: Reassignment(T0, (1, 2), (2,), (1,))}
    assert [one.leaked for one in throttles_in(configs, here)] == [False, False]


names = st.sampled_from([LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE])


@given(
    st.dictionaries(names, st.integers(1, 99)), st.integers(1, 99), st.none() | st.integers(1, 99)
)
def test_restoring_changes_restore_the_original_configs(
    before: dict[str, int], rate: int, log_dirs_rate: int | None
) -> None:
    source = BROKER.own_source or ""
    configs = {BROKER: [config(name, str(value), source) for name, value in before.items()]}
    changes = rate_changes([1], rate, log_dirs_rate)
    after = {name: str(value) for name, value in before.items()}
    for change in [*changes[BROKER], *restoring_changes(changes, configs)[BROKER]]:
        after.pop(change.name, None)
        if change.operation is Operation.SET:
            after[change.name] = change.value or ""
    assert after == {name: str(value) for name, value in before.items()}


def test_default_of_a_server_properties_file_is_not_written_into_the_cluster() -> None:
    before = {BROKER: [config(LEADER_RATE, "7", "STATIC_BROKER_CONFIG")]}
    undo = restoring_changes(rate_changes([1], 5), before)[BROKER]
    assert undo == [Change(name, Operation.DELETE) for name in (LEADER_RATE, FOLLOWER_RATE)]


def test_clearing_deletes_all_throttles_of_brokers_and_topics() -> None:
    changes = clear_all_changes([1], ["t"])
    assert [len(changes[entity]) for entity in (BROKER, TOPIC)] == [3, 2]
    assert {change.operation for some in changes.values() for change in some} == {Operation.DELETE}


def test_changes_of_one_entity_come_together() -> None:
    both = merged(rate_changes([1], 5), rate_changes([1, 2], None, 6))
    assert [change.name for change in both[BROKER]] == [LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE]
    found = throttles_in({TOPIC: [config(LEADER_REPLICAS, "*", TOPIC.own_source or "")]}, {})
    assert deletions_of(found) == {TOPIC: [Change(LEADER_REPLICAS, Operation.DELETE)]}
