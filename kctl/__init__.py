"""The command line for people who run Kafka: any Kafka, Apache's or ours.

Uses the broker's codecs, log readers and network client, never its server side.
"""

from broker import __version__

__all__ = ["__version__"]
