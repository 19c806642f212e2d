"""Random changes of inputs where there is no library that does it better; and making an input smaller."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

_NUMBERS = (0, 1, 2, 7, 8, 60, 127, 128, 254, 255)


def mutated(chance: random.Random, corpus: Sequence[bytes], tokens: Sequence[bytes], most: int) -> bytes:
    """One of the inputs with some changes; at most so many bytes."""
    data = bytearray(chance.choice(corpus)) if corpus else bytearray()
    for _ in range(1 << chance.randrange(5)):
        at = chance.randrange(len(data) + 1)
        stop = min(len(data), at + 1 + int(chance.expovariate(0.2)))
        what = chance.randrange(7)
        if what == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif what == 1 and at < len(data):
            data[at] = chance.choice(_NUMBERS)
        elif what == 2:
            del data[at:stop]
        elif what == 3:
            data[at:at] = data[at:stop] * chance.choice((1, 2, 9))
        elif what == 4:
            data[at:stop] = chance.randbytes(chance.randrange(1, 9))
        elif what == 5 and tokens:
            data[at:at] = chance.choice(tokens)
        elif corpus:
            other = chance.choice(corpus)
            first = chance.randrange(len(other) + 1)
            data[at:stop] = other[first : first + chance.randrange(64)]
    return bytes(data[:most])


def smaller(data: bytes, fails: Callable[[bytes], bool], seconds: float = 10.0) -> bytes:
    """A part of `data`, with as many zeros as can be, that still fails."""
    end = time.monotonic() + seconds
    size = len(data)
    while size:
        at = 0
        while at < len(data) and time.monotonic() < end:
            shorter = data[:at] + data[at + size :]
            if fails(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    for at in range(len(data)):
        if data[at] and time.monotonic() < end:
            plainer = data[:at] + b"\0" + data[at + 1 :]
            if fails(plainer):
                data = plainer
    return data
