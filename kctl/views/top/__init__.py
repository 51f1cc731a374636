"""Tables of `kctl top`."""
