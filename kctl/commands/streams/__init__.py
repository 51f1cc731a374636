"""`kctl streams`."""
