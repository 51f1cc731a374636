"""Reads records from log directories and clusters."""
