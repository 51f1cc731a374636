"""`kctl dump-log`."""
