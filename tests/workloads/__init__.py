"""Whole workloads: the answers with indexes, without them, and those of another engine are the same."""
