"""How fast is a needle found in a lake, next to those who move the data, who scan it, or who keep a server for it?"""

from bench.needle.cases import PARTS, run

__all__ = ["PARTS", "run"]
