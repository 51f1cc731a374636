"""`kctl groups`."""
