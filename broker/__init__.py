"""A Kafka-compatible broker.

Each room's docstring says what the room is for and what it may use. Rooms import downwards only:

    server > identity | background > api > group | txn > replica | controller
           > log | metadata | metadata_cache | net | security
           > records > protocol > config | metrics | assignment
           > model | topic_names | java_strings | errors | clock
"""

__version__ = "0.1.0"
