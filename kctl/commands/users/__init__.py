"""`kctl users`."""
