"""Offset ranges of an export, their origin, and how they are split into tasks. No I/O."""
