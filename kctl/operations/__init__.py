"""Long-running work on a cluster: reassignments, throttling, watching groups."""
