"""`kctl spark-export`."""
