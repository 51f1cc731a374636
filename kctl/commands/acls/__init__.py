"""`kctl acls`."""
