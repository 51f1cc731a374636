"""Rows, columns and JSON shapes of what kctl shows, and the text of Kafka's own tools."""
