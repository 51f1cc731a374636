"""Deterministic simulation: whole brokers in one process on virtual time, driven by a seed.

Real: everything from the request dispatcher downwards (handlers, fetch sessions, purgatory, replica
fetchers, controller, group and transaction coordinators, logs on a real file system).
Simulated: time and the event loop (`loop`), the network between brokers and clients (`network`),
ZooKeeper with sessions and watches (`zookeeper`), and the disk's faults (`disk`).

    python -m tests.simulation --seed 17            one run, with its log
    python -m tests.simulation --seeds 1-1000       many runs on all cores; prints failing seeds
    make simulate                                   the same from the Makefile

`cluster` starts, crashes and pauses brokers; `clients` produce, run transactions and consume in
groups; `faults` chooses what goes wrong. `invariants` says what must hold after every step, and
`checks` what must hold once the faults have ended. `bugs` can be put into the brokers, to see that
they are found. A seed fixes everything that happens, so a failing seed replays exactly. Seeds that
found a bug are kept in `test_simulation.py`.
"""
