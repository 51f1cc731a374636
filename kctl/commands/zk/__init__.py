"""`kctl zk`."""
