"""Queries and changes on a cluster through broker.net.client: one module per subject.

They work with any Kafka version; if a cluster lacks an API, the error names the version that has
it.
"""
