"""Planning of reassignments: goals, drafts, balance, cost, batches, progress."""
