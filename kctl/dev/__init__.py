"""Development brokers on this machine, managed by `kctl dev`."""
