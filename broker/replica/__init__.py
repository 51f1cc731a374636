"""④ Partitions as replicas: role, ISR, high watermark, and waiting for them to move.

May use log, metadata, net, records, protocol and what lies below.
"""
