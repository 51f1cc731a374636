"""Who decides: topics, their replicas and their leaders. One event queue, fenced by its epoch.

May use metadata, net, records, protocol and what lies below. From the outside to the inside:

    controller         the outside, on every broker; elector, event_queue
    active             what an elected controller is made of; term is what its parts share
    brokers topic_admin deletion reassigning elections isr_changes producer_id_blocks
                       what happens, and what follows from it
    partition_machine replica_machine
                       the steps in which partitions and replicas change, written then told
    fenced_store request_batch channels
                       where it is written, how brokers are told
    context states leadership election reassignment alter_partition topic_plan
                       what is known, and what is decided from it: pure
"""
