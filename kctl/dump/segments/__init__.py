"""Segments of a partition: where an offset lies, and when retention deletes them."""
