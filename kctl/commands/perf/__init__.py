"""`kctl perf`."""
