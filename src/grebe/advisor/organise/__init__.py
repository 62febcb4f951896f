"""Layouts that are learned from the queries on a table: what to lay out within a budget, and what anew as queries change."""
