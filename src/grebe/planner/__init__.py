"""Decides what of a query is answered from which index. Plain data in, plain data out: no Spark here, and nothing is read but what
`Inquiry` asks of indexes that prune."""
