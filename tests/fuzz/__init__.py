"""Fuzzing: requests of every API and version, record batches, files of partitions.

    python -m tests.fuzz --frames 100000 --seed 1
    make fuzz                                       the same from the Makefile

`batches` appends damaged record batches to a log; `segments` damages the files of a partition,
loads and dumps them. Both need no broker.

`generate` builds valid requests from the declared schemas, with values at the edges of their types;
`mutate` damages their bytes; `run` sends them to a real broker, beside a client that only asks for
metadata. The broker must stay alive, answer that client in time, keep its memory bounded and log
no traceback. A seed fixes the frames, so a finding can be repeated.
"""
