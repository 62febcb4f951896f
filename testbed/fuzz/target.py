"""What a fuzzer is: sound bytes, how a mutation is sealed again, and what reads it."""

import contextlib
import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from grebe.errors import GrebeError
from testbed.fuzz.mutators import BINARY, Mutator, mutate
from testbed.fuzz.seeds import Seeds


class Target(ABC):
    """One kind of bytes."""

    mutators: ClassVar[Sequence[Mutator]] = BINARY

    def __init__(self, seeds: Seeds) -> None:
        self.seeds = seeds
        self.sound: list[bytes] = self.inputs()

    @abstractmethod
    def inputs(self) -> list[bytes]:
        """What is mutated: without its seal."""

    def sealed(self, data: bytes) -> bytes:
        return data

    @abstractmethod
    def consume(self, data: bytes) -> str | None:
        """Read it, and use it. A text: what is wrong with the answer."""

    def case(self, number: int) -> bytes:
        chance = random.Random(f"{type(self).__name__} {number}")
        return self.sealed(mutate(chance, chance.choice(self.sound), self.sound, self.mutators))

    def warm(self) -> None:
        for one in self.sound:
            with contextlib.suppress(GrebeError):
                self.consume(self.sealed(one))


def line_sealed(line: bytes) -> bytes:
    line = line.replace(b"\n", b" ")
    return line + b'\n{"sha256":"%b"}\n' % hashlib.sha256(line).hexdigest().encode()
