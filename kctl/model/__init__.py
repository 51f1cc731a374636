"""Frozen dataclasses that all layers share: topics, groups, assignments, outcomes, records."""
