"""Rows of a table kept in memory, laid out for the queries of one client."""
