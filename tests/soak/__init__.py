"""Soak test: a long mixed load, in which memory, file descriptors and waits must level off.

    python -m tests.soak --seconds 3600      samples to the output and to a CSV file; exit 1 if
                                             something still grows at the end
    make soak                                the same; SOAK_SECONDS

A steady load (producer with acks=all, a group, transactions) runs beside one in which everything
comes and goes: connections, topics, groups, producers, transactional ids. Settings make the brokers
forget all of these, and delete old segments, within a minute, so that nothing has a reason to grow.
Memory and waits are compared by thirds of the run; descriptors at rest, before and after the load.
"""
