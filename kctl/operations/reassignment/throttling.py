"""Throttles of a reassignment: set before it starts and removed after it, however it ends."""

import time
from collections.abc import Collection, Iterable, Sequence

from broker.errors import ErrorCode
from kctl.admin.cluster import describe_cluster
from kctl.admin.connection import ask
from kctl.admin.throttles import alter_and_verify, alter_each, own_configs
from kctl.cli.errors import CliError, ExitStatus
from kctl.cli.interrupts import undisturbed
from kctl.cli.options import Session
from kctl.model.assignments import Assignment, ReassignmentFile
from kctl.model.configs import Config, Entity
from kctl.model.outcomes import Outcome
from kctl.model.reassignments import Reassignments
from kctl.operations.throttles import find_throttles
from kctl.plans.throttles import (
    ConfigChanges,
    brokers_of,
    clear_all_changes,
    deletions_of,
    destinations_of,
    endpoints_of,
    merged,
    rate_changes,
    restoring_changes,
    topic_changes,
)
from kctl.views.kafka_text.reassign import clearing_lines
from kctl.views.quantities import plural

RELEASE_ATTEMPTS = 3
RELEASE_PAUSE_S = 1.0
CLEAR_COMMAND = "kctl throttle clear --leaked"
CLEAR_HINT = "kctl throttle list shows the throttles, kctl throttle clear removes them"


class Throttling:
    """The throttles that one run has set.

    Invariant: `_restore` undoes every change that was sent, or may have been sent, since the last
    `release`; it is set before the first change is sent.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._restore: ConfigChanges = {}
        self._original: dict[Entity, list[Config]] = {}
        """Configs of each entity before this run changed it. They are read only once: brokers
        apply changes one after the other, so a throttle that this run has just deleted could be
        read back as something to restore. *Invariant*: brokers without an entry were not changed.
        """
        self._noted: set[int] = set()
        """Brokers that were reported as down."""

    def set(
        self,
        wanted: ReassignmentFile,
        in_progress: Reassignments,
        current: Assignment,
        *,
        rate: int | None,
        log_dirs_rate: int | None = None,
    ) -> None:
        """Throttle the reassignments in progress and in `wanted`; CliError if it is refused.

        A broker that replicas are only moved away from may be down: it is left out, with a note.
        Kafka changes the configs of a broker only through that broker, so nothing can be stored
        for it; the throttles of the destinations hold nevertheless. After a CliError no throttle
        is left.
        """
        changes: ConfigChanges = {}
        destinations: set[int] = set()
        if rate is not None:
            endpoints = endpoints_of(in_progress, wanted.replicas, current)
            rates = rate_changes(brokers_of(endpoints), rate)
            changes = merged(topic_changes(endpoints), rates)
            destinations = destinations_of(endpoints)
        if log_dirs_rate is not None:
            brokers = {broker for _, broker in wanted.log_dirs}
            changes = merged(changes, rate_changes(brokers, None, log_dirs_rate))
            destinations |= brokers
        try:
            self._apply(changes, destinations)
        except BaseException:  # Ctrl-C too: some of the changes may have been made
            self.release()
            raise

    def release(self) -> list[Outcome]:
        """Remove all throttles, ignoring signals; returns those that could not be removed."""
        with undisturbed():
            left = release(self._session, self._restore)
        self._restore = {}
        return left

    def keep(self) -> bool:
        """Leave the throttles in place after the run; returns whether there are any."""
        is_set = bool(self._restore)
        self._restore = {}
        return is_set

    def _apply(self, changes: ConfigChanges, destinations: Collection[int]) -> None:
        self._read_originals(changes, destinations)
        changes = {entity: some for entity, some in changes.items() if entity in self._original}
        self._restore = restoring_changes(changes, self._original)
        outcomes = ask(self._session, lambda client: alter_each(client, changes))
        if failed := [one for one in outcomes if one.error]:
            raise CliError(
                f"cannot set the throttle: {failed[0].name}: {failed[0].reason}",
                "no partition was reassigned",
            )

    def _read_originals(self, entities: Iterable[Entity], destinations: Collection[int]) -> None:
        """Read the configs that are not yet known; CliError if a destination does not answer."""
        new = [entity for entity in entities if entity not in self._original]
        if not new:
            return
        session = self._session
        before = dict(session.unanswered)
        self._original |= ask(session, lambda client: own_configs(client, new), partial=True)
        failures = {b: text for b, text in session.unanswered.items() if b not in before}
        session.unanswered = before  # reported here; the run does not need these brokers
        for broker, failure in sorted(failures.items()):
            if broker in destinations:
                raise CliError(
                    f"cannot set the throttle: {failure}",
                    "no partition was reassigned; exclude the broker with --brokers",
                    ExitStatus.TIMED_OUT,
                )
            if broker not in self._noted:
                session.out.note(f"{failure}: its throttle is not set")
                self._noted.add(broker)


def release(session: Session, restore: ConfigChanges) -> list[Outcome]:
    """Remove throttles and check that they are gone; returns those that are not.

    Several attempts are made, because a broker may be restarting. Never raises: this is the last
    step of a run, whatever has happened before.
    """
    left: list[Outcome] = []
    for attempt in range(RELEASE_ATTEMPTS):
        if not restore:
            return []
        if attempt:
            time.sleep(RELEASE_PAUSE_S)
        left = _release_once(session, restore)
        names = {one.name for one in left}
        restore = {entity: some for entity, some in restore.items() if str(entity) in names}
    for one in left:
        session.out.note(f"the throttle of {one.name} is still set: {one.reason}; {CLEAR_HINT}")
    return left


def _release_once(session: Session, restore: ConfigChanges) -> list[Outcome]:
    try:
        outcomes = ask(session, lambda client: alter_and_verify(client, restore))
    except CliError as error:
        failed = ErrorCode.REQUEST_TIMED_OUT
        return [Outcome(str(entity), failed, error.message) for entity in restore]
    return [one for one in outcomes if one.error]


def clear_leaked(session: Session) -> None:
    """Delete the throttles without a reassignment in progress, and report their number."""
    leaked = [
        throttle for throttle in ask(session, find_throttles, partial=True) if throttle.leaked
    ]
    if leaked:
        left = release(session, deletions_of(leaked))
        session.out.note(f"cleared {plural(len(leaked) - len(left), 'throttle')}")


def clear_like_kafka(session: Session, wanted: Assignment) -> None:
    """Delete all throttles of all brokers and of the plan's topics, with the text of the tool."""
    cluster = ask(session, describe_cluster)
    brokers = [broker.id for broker in cluster.brokers]
    brokers += [broker for replicas in wanted.values() for broker in replicas]
    topics = [partition.topic for partition in wanted]
    session.out.lines(clearing_lines(brokers, topics))
    changes = clear_all_changes(set(brokers), set(topics))
    outcomes: Sequence[Outcome] = ask(session, lambda client: alter_each(client, changes))
    if failed := [one for one in outcomes if one.error]:
        raise CliError(f"{failed[0].name}: {failed[0].reason}", CLEAR_HINT)
