"""Batches, records and entries of other files as rows, and how rows are shown."""
