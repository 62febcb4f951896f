"""The table changed since its indexes were made: what is left of their gain, what does it take to catch up, does a query lose?"""

from bench.hybrid.cases import PARTS, run

__all__ = ["PARTS", "run"]
