"""How many files are left to read, how small is what tells so, and what do making and asking it take?"""

from bench.sieve.cases import PARTS, run

__all__ = ["PARTS", "run"]
