"""The text that kafka-dump-log prints."""
