"""`kctl tokens`."""
