"""A Kafka-compatible broker.

Packages import downwards only: server, api, group and txn, replica and controller, then log,
metadata, net and security, records, protocol, config. `tests/docs/test_import_rules.py` holds the
complete list of layers; the docstring of each package says what it is for.
"""

__version__ = "0.1.0"
