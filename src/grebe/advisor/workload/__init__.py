"""The queries on a table, recorded where that is asked for: beside its log, by any number of clients, without a server."""
