"""Kafka's KafkaController: the interface to the controller on every broker.

Requests, watches, responses of brokers and elections are events of one queue and are processed one
at a time, in the order in which they arrived. While another broker is the controller, requests fail
with NOT_CONTROLLER. The work of an elected controller is in `active`, which is built for each
election and discarded when the broker resigns: nothing of an old epoch survives in memory.

The life of a controllership:

    elected    this broker created /controller and raised /controller_epoch, in one transaction
    active     it has read the store and sent every broker its partitions
    resigned   /controller changed, a write was rejected by its epoch check, or the session expired

An expired session ends it at once, without a write: the events still queued are dropped. The broker
takes part in the next election after it has registered again (`rejoined`).

Every write of a controller checks its epoch in the store (`fenced_store`), and brokers refuse
requests of an older epoch. A controller that does not notice in time that it was replaced can
therefore do no harm; it notices at its next write.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.config.dynamic import DynamicConfig
from broker.config.topic import TopicConfig
from broker.controller.active import ActiveController
from broker.controller.controller_broker_request_batch import RequestSender
from broker.controller.controller_channel_manager import (
    BrokerChannel,
    Connect,
    ControllerChannelManager,
    LocalBroker,
    LocalChannel,
    RemoteChannel,
)
from broker.controller.controller_context import ControllerContext
from broker.controller.controller_election import (
    ControllerElection,
    ElectedEpoch,
    FairControllerElection,
    FirstControllerElection,
)
from broker.controller.controller_event_manager import ControllerEventManager
from broker.controller.controller_services import ControllerServices
from broker.controller.fenced_store import ControllerMoved, FencedStore
from broker.controller.producer_id_blocks import allocate_block
from broker.controller.replica_leader_election import ElectionType
from broker.controller.topic_admin import CreatedTopic, NewTopic
from broker.errors import ApiError, ErrorCode
from broker.metadata.errors import SessionExpired, StoreError, StoreWriteFailed
from broker.metadata.store import EventKind, MetadataStore, Watch, WatchEvent
from broker.metadata.znodes.controller import ControllerZnode
from broker.metadata.znodes.topics import ReplicaAssignment
from broker.model import TopicPartition
from broker.net.broker_connection import Node
from broker.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from broker.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from broker.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from broker.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from broker.protocol.messages.stop_replica import StopReplicaResponse

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FAILED_ELECTION_PAUSE_S = 1.0
"""Pause before the next election after one that failed, or whose controller failed at once, so that
brokers do not elect and resign in a tight loop."""


class KafkaController:
    """The controller as the rest of the broker sees it, whether or not it is this broker.

    Everything that changes `_active` runs as an event of `_events`, with two exceptions that must
    not wait for the queue: an expired session (`_expired`) and the broker's shutdown (`stop`).

    All of it runs on the broker's event loop, so there are no locks; an event may be suspended
    while it waits for the store, but no other event runs meanwhile.
    """

    def __init__(
        self,
        store: MetadataStore,
        configs: DynamicConfig,
        local: LocalBroker,
        connect: Connect,
        clock: Clock,
    ) -> None:
        self._store = store
        self._configs = configs
        self._local = local
        self._connect = connect
        self._events = ControllerEventManager()
        self._election = self._make_election(clock)
        self._active: ActiveController | None = None
        """The elected controller; None while another broker is. Set before it has read the store:
        events that need more than that are queued behind the one that reads it."""
        self._elected: ElectedEpoch | None = None
        """The won election. Invariant: None exactly when `_active` is None."""
        self._is_registered = False
        """Whether this broker may be elected: not between an expired session and `rejoined`."""
        self._watch: Watch | None = None
        """On /controller, from `start` to `stop`; on every broker, not only on the controller."""
        configs.on_topic_change(self._topic_config_changed)
        configs.on_broker_change(self._broker_config_changed)

    def _make_election(self, clock: Clock) -> ControllerElection:
        """The way in which brokers agree on a controller: `controller.election`.

        "first" is Kafka's, where all brokers race to create /controller; "fair" is ours, where they
        queue.
        """
        broker_id = self._configs.broker_id
        if self._configs.static.controller_election == "fair":
            return FairControllerElection(self._store, broker_id, clock, self._stand_for_election)
        return FirstControllerElection(self._store, broker_id, clock)

    # Election and resignation

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller."""
        return self._active is not None

    @property
    def context(self) -> ControllerContext | None:
        """The controller's memory of the cluster, for metrics; None unless it is active."""
        active = self._active
        return None if active is None else active.services.context

    @property
    def num_queued_events(self) -> int:
        """How many events have not begun.

        Kafka's metric EventQueueSize.
        """
        return len(self._events)

    @property
    def epoch(self) -> int:
        """The controller epoch; NOT_CONTROLLER if another broker is the controller."""
        return self._require().services.epoch

    async def start(self) -> None:
        """Take part in the election; the broker must be registered.

        If it is elected, this returns when it has read the store and when this broker has processed
        the first requests it sent. New partitions may still be coming online then.
        """
        # The watch is set before the first election: a controller that is elected, or dies, in
        # between is noticed.
        self._events.start()
        self._is_registered = True
        self._store.session.on_expired(self._expired)
        self._watch = self._store.watch_data(ControllerZnode.PATH, self._controller_changed)
        await self._events.call("startup", self._elect)
        await self.flush()

    async def stop(self) -> None:
        """Resign, and take part in no further election."""
        # Events first, so that nothing is elected or sent during the rest. /controller is deleted
        # last: the next controller must not be elected while this one could still write.
        self._is_registered = False
        if self._watch is not None:
            self._watch.cancel()
        await self._events.stop()
        self._election.close()
        elected = self._elected
        self._resign()
        if elected is not None:
            await self._election.resign(elected)

    def rejoined(self) -> None:
        """Take part in elections again: the broker has registered in a new session.

        Not before: the ephemeral nodes of an elected controller would belong to a session without a
        registered broker, and its own replicas would count as offline.
        """
        self._is_registered = True
        self._stand_for_election()

    async def flush(self) -> None:
        """Wait until this broker has processed the requests that its own controller sent so far.

        So that a client that creates a topic and produces to the same broker finds the partitions
        there. Other brokers are not waited for, as in Kafka: their clients retry.
        """
        if self._active is not None:
            await self._active.services.channels.flush(self._configs.broker_id)

    def _expired(self) -> None:
        # Runs before any watch of the expired session is notified. The ephemeral /controller is
        # gone already, so that another broker may have been elected: nothing may be sent any more.
        self._is_registered = False
        self._events.clear()
        self._resign()

    def _controller_changed(self, event: WatchEvent) -> None:
        """/controller was created, changed or deleted, perhaps by this broker itself.

        The callback only queues an event: it may run while another event of the controller waits
        for the store, and must not change what that event works on.
        """
        if event.kind is EventKind.DELETED:
            self._stand_for_election()
        elif event.kind is not EventKind.SESSION_EXPIRED:
            self._events.put("controller change", self._maybe_resign)

    def _stand_for_election(self) -> None:
        """Queue an election. Queued twice it runs once, which is enough."""
        self._events.put("reelect", self._reelect)

    async def _reelect(self) -> None:
        """Resign if the deleted node was ours, then try to be elected.

        The node may have been deleted by an operator to force an election: then this broker is
        still active and has to resign first, although it may win again.
        """
        await self._maybe_resign()
        await self._elect()

    async def _maybe_resign(self) -> None:
        """Resign if another broker, or another session of this one, is the controller.

        The owner of the node decides, not the broker id in it: a node of this broker's previous
        session is not ours any more.
        """
        if self._active is None:
            return
        try:
            stat = await self._store.exists(ControllerZnode.PATH)
        except SessionExpired:
            stat = None  # the node was deleted with the session
        if stat is None or stat.ephemeral_owner != self._store.session.id:
            self._resign()

    def _resign(self) -> None:
        """Stop being the controller, in memory: nothing is written or sent from here on.

        /controller is not deleted. Mostly it is gone already, or belongs to another broker.
        """
        # First in memory: from here on requests get NOT_CONTROLLER, and events that are queued
        # already are dropped by `_later`.
        active, self._active, self._elected = self._active, None, None
        if active is not None:
            active.close()
            logger.info(
                "Resigned as the controller broker=%s epoch=%s",
                self._configs.broker_id,
                active.services.epoch,
            )

    async def _elect(self) -> None:
        """Try to be elected once, and start the controller if that succeeds.

        Losing is not an error: the watch on /controller starts the next election. A store that
        does not answer is retried here, because then no watch fires.
        """
        # Both are usual: several events can ask for an election, and a broker between two sessions
        # must not be elected.
        if self._active is not None or not self._is_registered:
            return
        try:
            elected = await self._election.elect()
        except StoreError as error:
            if not isinstance(error, StoreWriteFailed):  # which the store has logged
                logger.warning("Failed to take part in the controller election: %s", error)
            asyncio.get_running_loop().call_later(
                _FAILED_ELECTION_PAUSE_S, self._stand_for_election
            )
            return
        if elected is not None:
            logger.info(
                "Elected as the controller broker=%s epoch=%s",
                self._configs.broker_id,
                elected.epoch,
            )
            await self._take_over(elected)

    async def _take_over(self, elected: ElectedEpoch) -> None:
        """Start the elected controller; resign if it cannot start.

        A. A newer controller exists: resign, it owns the node.
        B. The start failed otherwise: resign and delete the node after a pause, so that another
           broker, whose disk or connection may be better, gets its turn.
        """
        # Set before the start: what the start sends is answered by events of this controller, and
        # an expired session must find it to stop it.
        active = ActiveController(self._make_services(elected))
        self._active, self._elected = active, elected
        try:
            await active.start()
        except (ControllerMoved, SessionExpired) as error:
            logger.info("Controller moved to another broker during startup: %s", error)
            self._resign()  # A
        # Any other error, a malformed node for example. Not resigning would leave a controller that
        # has read only a part of the cluster.
        except Exception as error:  # B
            if not isinstance(error, StoreWriteFailed):  # which the store has logged
                logger.exception("Error while starting the elected controller, resigning")
            self._resign()
            await asyncio.sleep(_FAILED_ELECTION_PAUSE_S)
            await self._election.resign(elected)

    def _make_services(self, elected: ElectedEpoch) -> ControllerServices:
        """Everything that belongs to one controller epoch; nothing of it is reused later."""
        config = self._configs.broker
        channels = ControllerChannelManager(self._open_channel)
        sender = RequestSender(
            self._configs.broker_id,
            elected.epoch,
            config.inter_broker_listener,
            channels,
            self._leader_and_isr_answered,
            self._stop_replica_answered,
        )
        store = FencedStore(self._store, elected.epoch, elected.version)
        return ControllerServices(
            self._configs.broker_id,
            self._configs,
            store,
            ControllerContext(),
            channels,
            sender,
            partial(self._later, elected),
        )

    def _open_channel(self, broker_id: int, node: Node | None) -> BrokerChannel:
        """The way to a broker.

        Requests to the controller's own broker do not go through a socket, but are queued and
        answered in the same way.
        """
        if broker_id == self._configs.broker_id:
            return LocalChannel(self._local)
        timeout_s = self._configs.broker.controller_socket_timeout_ms / 1000
        return RemoteChannel(node, self._connect, timeout_s)

    # Events

    def _later(
        self, elected: ElectedEpoch, name: str, event: Callable[[], Awaitable[object]]
    ) -> None:
        """Queue an event of the controller that won this election; dropped if it has resigned.

        The event belongs to that election, whichever controller is active when it is queued: a
        timer of the previous controller may fire late and must not make the present one resign.
        For the same reason the epoch is part of the name: an event that will be dropped must not
        suppress a later one of the present controller.
        """

        # Checked when it runs, not when it is queued: the controller may resign in between.
        async def guarded() -> None:
            active = self._active
            if active is not None and elected is self._elected:
                await self._run_without_caller(active, event)

        self._events.put(f"{name} epoch={elected.epoch}", guarded)

    def _put(self, name: str, event: Callable[[ActiveController], Awaitable[object]]) -> None:
        """Queue an event of the active controller, if this broker is the controller."""
        active, elected = self._active, self._elected
        if active is not None and elected is not None:
            self._later(elected, name, lambda: event(active))

    async def _run_without_caller(
        self, active: ActiveController, event: Callable[[], Awaitable[object]]
    ) -> None:
        """Run an event without a caller.

        Two failures need no further report: the services were closed (this broker resigned), or
        the store cannot be written. The store has logged the latter, and
        `ActiveController.retry_later` repeats the event.
        """
        try:
            await self._run_fenced(active, event)
        except StoreWriteFailed:
            return
        except ApiError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise

    async def _run_fenced(self, active: ActiveController, event: Callable[[], Awaitable[T]]) -> T:
        """Run an event of the active controller.

        A. The store rejected the epoch, or the session expired: resign. The event may have been
           queued for an earlier controller of this broker, which then is no longer `_active`.
        B. The store cannot be written (disk full): stay the controller and repeat later.
        C. The event succeeded: watch the nodes of topics and brokers that it has added.

        An event that fails half-way is not rolled back: all parts of ActiveController can be called
        again, and do what is missing.
        """
        try:
            result = await event()
        except (ControllerMoved, SessionExpired) as error:  # A
            logger.info("Controller moved to another broker: %s", error)
            if active is self._active:
                self._resign()
                self._stand_for_election()
            raise ApiError(ErrorCode.NOT_CONTROLLER) from error
        except StoreWriteFailed:  # B
            active.retry_later()
            raise
        if active is self._active:  # C
            active.watch_topics_and_brokers()
        return result

    async def _run_for_request(
        self, name: str, work: Callable[[ActiveController], Awaitable[T]]
    ) -> T:
        """Run a request as an event, and return its result.

        Checked twice: a request that arrives at the wrong broker fails at once, without waiting
        for the queue; one that was queued fails if this broker has resigned meanwhile.

        The request is not cancelled with its caller: a client that disconnects does not stop a
        change that is half done.
        """
        self._require()

        async def event() -> T:
            active = self._require()
            return await self._run_fenced(active, lambda: work(active))

        return await self._events.call(name, event)

    def check_active(self) -> None:
        """Raise NOT_CONTROLLER unless this broker is the controller; Kafka checks that first."""
        self._require()

    def _require(self) -> ActiveController:
        """The active controller; NOT_CONTROLLER makes the client look for the new one and retry."""
        if self._active is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
        return self._active

    def _leader_and_isr_answered(
        self, broker_id: int, broker_epoch: int, response: LeaderAndIsrResponse
    ) -> None:
        """A broker answered LeaderAndIsr; its errors name replicas in failed log directories.

        The id of the response makes the event's name unique: every response must be processed.
        """

        async def process(active: ActiveController) -> None:
            if active.services.context.is_registered(broker_id, broker_epoch):
                await active.brokers.process_leader_and_isr_response(broker_id, response)

        self._put(f"LeaderAndIsr {id(response)}", process)

    def _stop_replica_answered(
        self,
        broker_id: int,
        broker_epoch: int,
        response: StopReplicaResponse,
        asked: frozenset[TopicPartition],
    ) -> None:
        """A broker answered StopReplica; `asked` are the replicas that it was to delete."""

        # A response of the broker's previous session says nothing about the present one. It may be
        # queued behind the event that has begun the deletion again, whose result it is not.
        async def process(active: ActiveController) -> None:
            if active.services.context.is_registered(broker_id, broker_epoch):
                await active.process_stop_replica_response(broker_id, response, asked)

        if asked:
            self._put(f"StopReplica {id(response)}", process)

    def _topic_config_changed(self, topic: str, config: TopicConfig) -> None:
        """Elect leaders of offline partitions as soon as unclean elections are allowed."""
        if config.unclean_leader_election_enable:
            name = f"unclean election of {topic}"
            self._put(name, lambda active: active.partitions.elect_missing(topic))

    def _broker_config_changed(self, old: BrokerConfig, new: BrokerConfig) -> None:
        """The same for all topics, if the default of unclean.leader.election.enable was changed."""
        if new.unclean_leader_election_enable and not old.unclean_leader_election_enable:
            self._put("unclean election", lambda active: active.partitions.elect_missing())

    # Topics

    async def create_topic(self, new: NewTopic) -> CreatedTopic:
        """Create a topic; on an ApiError nothing has changed."""
        (outcome,) = await self.create_topics([new])
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    async def create_topics(self, topics: Sequence[NewTopic]) -> list[CreatedTopic | ApiError]:
        """Create topics together, in one event; a failure concerns only its topic.

        In one event, so that a request for a thousand topics needs few transactions and one round
        of requests to the brokers.
        """
        outcomes = await self._run_for_request(
            "create topics", lambda active: active.topics.create(topics)
        )
        await self.flush()
        return outcomes

    async def validate_topic(self, new: NewTopic) -> CreatedTopic:
        """What `create_topic` would create; ApiError if it would fail.

        An event like the others, so that it sees every topic whose creation was requested before.
        """

        async def validate(active: ActiveController) -> CreatedTopic:
            return active.topics.validate(new)

        return await self._run_for_request("validate topic", validate)

    async def create_partitions(
        self,
        name: str,
        count: int,
        manual: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Raise the number of a topic's partitions to `count`.

        `manual` has the replicas of each new partition; without it the controller places them.
        Existing partitions are not touched, but keys map to other partitions afterwards.
        """
        await self._run_for_request(
            "create partitions",
            lambda active: active.topics.create_partitions(
                name, count, manual, validate_only=validate_only
            ),
        )
        await self.flush()

    async def delete_topic(self, name: str, timeout_ms: int | None = None) -> None:
        """Delete a topic; returns when it is gone, or when its deletion must wait for a broker.

        Its files are deleted after `file.delete.delay.ms`. REQUEST_TIMED_OUT if the brokers do not
        answer in time; the deletion continues nevertheless.
        """
        settled = await self._run_for_request(
            "delete topic", lambda active: active.topics.delete(name)
        )
        timeout_s = None if timeout_ms is None else max(timeout_ms, 0) / 1000
        # Outside of the event: while brokers delete their replicas, the controller processes other
        # events, among them the responses on which this waits.
        done, _ = await asyncio.wait([settled], timeout=timeout_s)
        if not done:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
        await self.flush()

    # Replicas and leaders

    async def reassignments(self) -> dict[TopicPartition, ReplicaAssignment]:
        """The partitions that are being reassigned.

        Includes those that wait for a dead target broker.
        """

        async def look(active: ActiveController) -> dict[TopicPartition, ReplicaAssignment]:
            context = active.services.context
            return {name: context.assignment(name) for name in sorted(context.reassigning)}

        return await self._run_for_request("list reassignments", look)

    async def reassign(self, name: TopicPartition, target: Sequence[int] | None) -> None:
        """Reassign a partition to the `target` replicas; None cancels its reassignment.

        Returns long before the replicas have copied the data: `reassignments` shows the progress.
        """
        await self._run_for_request(
            "reassign", lambda active: active.reassigner.reassign(name, target)
        )
        await self.flush()

    async def elect_leaders(
        self, names: Iterable[TopicPartition], election_type: ElectionType
    ) -> dict[TopicPartition, ApiError | None]:
        """Elect leaders; returns each partition's error, or None where a leader was elected.

        A partition that has the wanted leader already gets ELECTION_NOT_NEEDED, as in Kafka.
        """
        outcomes = await self._run_for_request(
            "elect leaders", lambda active: active.elections.elect(names, election_type)
        )
        await self.flush()
        return outcomes

    # Requests of brokers

    async def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Change ISRs as their leaders request.

        KIP-497: leaders do not write the ISR themselves. The controller checks their leader and
        partition epoch, so that a leader that was replaced cannot shrink or expand the ISR.
        """
        return await self._run_for_request(
            "alter partition", lambda active: active.isr_changes.process_alter_partition(request)
        )

    async def controlled_shutdown(
        self, request: ControlledShutdownRequest
    ) -> ControlledShutdownResponse:
        """Move leadership away from a broker that is shutting down.

        The response names the partitions that it still leads; the broker asks again until there are
        none, or until controlled.shutdown.max.retries is reached.
        """
        remaining = await self._run_for_request(
            "controlled shutdown",
            lambda active: active.brokers.controlled_shutdown(
                request.broker_id, request.broker_epoch
            ),
        )
        return ControlledShutdownResponse(
            remaining_partitions=[
                RemainingPartition(topic_name=name.topic, partition_index=name.partition)
                for name in remaining
            ]
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        """Allocate a block of producer ids to a broker.

        A block that is allocated and not used, because the broker crashes, is lost: ids are never
        given out twice.
        """
        block = await self._run_for_request(
            "allocate producer ids",
            lambda active: allocate_block(active.services, request.broker_id, request.broker_epoch),
        )
        return AllocateProducerIdsResponse(
            producer_id_start=block.first_producer_id,
            producer_id_len=block.last_producer_id - block.first_producer_id + 1,
        )
