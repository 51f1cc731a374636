"""Replication: leaders, followers, the ISR and the high watermark, and requests that wait for them.

    controller_requests               LeaderAndIsr, StopReplica, UpdateMetadata
    manager                           all partitions of this broker
    partition, in_sync                one replica as leader or follower; its arithmetic, pure
    reevaluation                      which event re-evaluates what, as a table
    environment, state_change         what partitions know of the cluster; the log of state changes
    alter_partition_manager           sends the ISRs that leaders propose to the controller
    purgatory, delayed_operations,    requests that wait: until when, for what, and what completes
    watchers                          them
    fetcher_manager, fetcher,         the follower's side
    follower_session, follower_state
    alter_log_dirs                    moves replicas between log directories
    throttle                          replication quotas
    internal_topic                    the topics of the coordinators

May import log, metadata, net, records, protocol and what lies below them.
"""
