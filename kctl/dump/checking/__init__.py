"""Finds damage in log directories, and copies the undamaged part."""
