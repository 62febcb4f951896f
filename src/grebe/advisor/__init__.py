"""What is learnt from the queries that ran, and what to do about it."""
