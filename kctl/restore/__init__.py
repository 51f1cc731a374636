"""`kctl import`: topics restored from the exports of `kctl spark-export`, exactly once."""
