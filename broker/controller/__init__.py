"""The controller: decides on topics, replicas and leaders for the whole cluster.

Every broker has a KafkaController; the one that wins the election of /controller is active. All its
work happens in one event queue, so that events never overlap, and every write to the store is
fenced by the controller epoch, so that a controller that has been replaced writes nothing.

May use metadata, net, records, protocol and what lies below. From the outside to the inside:

    kafka_controller   the interface on every broker; controller_election, controller_event_manager
    active             the parts of an elected controller; controller_services is what they share
    broker_change_handler topic_admin topic_deletion_manager reassignment_manager
    replica_leader_election isr_change_handler producer_id_blocks
                       one module per kind of event: what it changes
    partition_state_machine replica_state_machine
                       transitions of partitions and replicas: written to the store, then sent
    fenced_store controller_broker_request_batch controller_channel_manager
                       writing to the store, sending requests to the brokers
    controller_context states leadership partition_leader_election replica_assignment
    alter_partition topic_plan
                       the controller's memory, and pure decisions made from it
"""
