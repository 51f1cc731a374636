"""What tests lean on: real servers in their own processes, and kctl with its output caught."""
