"""`kctl cluster`."""
