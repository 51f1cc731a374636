"""`kctl features`."""
