"""`kctl throttle`."""
