"""`kctl transactions`."""
