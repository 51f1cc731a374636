"""`kctl monitor`."""
