"""`kctl context`."""
