"""`kctl verify`."""
