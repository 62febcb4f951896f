"""Which indexes a workload asks for: candidates from its queries, and of these the best choice that a budget allows."""
