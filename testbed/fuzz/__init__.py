"""Fuzzers: seeded mutations of every kind of bytes that Grebe reads, tried out in a child process with limits."""
