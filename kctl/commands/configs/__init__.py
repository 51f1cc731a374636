"""`kctl configs`."""
