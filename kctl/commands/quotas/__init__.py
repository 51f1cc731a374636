"""`kctl quotas`."""
