"""A Kafka-compatible broker.

Each room's docstring says what the room is for and what it may use. Rooms import downwards only:

    server > api > group | txn > replica | controller > log | metadata | net | security
           > records > protocol > config | metrics | assignment > model | errors | clock
"""

__version__ = "0.1.0"
