"""A sieve of one column: which files hold which keys, learned, and tiny."""
