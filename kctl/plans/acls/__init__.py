"""What a set of ACLs means: the rule that decides a request, and rules that have no effect."""
