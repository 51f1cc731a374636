"""Brokers on this machine, for development: started, watched and stopped by `kctl dev`."""
