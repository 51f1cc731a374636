"""`kctl topics`."""
