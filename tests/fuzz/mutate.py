"""Damage to the bytes of a request."""

import random
import struct

INTERESTING = [
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    struct.pack(">h", -1),
    struct.pack(">h", 32767),
    struct.pack(">i", -1),
    struct.pack(">i", 2**31 - 1),
    struct.pack(">i", -(2**31)),
    struct.pack(">q", -1),
    struct.pack(">q", 2**63 - 1),
    b"\xff\xff\xff\xff\x0f",  # the largest unsigned varint
    b"\xff" * 10,
]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A damaged copy: bits flipped, numbers replaced, pieces cut out, repeated or inserted."""
    damaged = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        _mutate_once(damaged, rng)
    return bytes(damaged)


def _mutate_once(data: bytearray, rng: random.Random) -> None:
    if not data:
        data += rng.randbytes(4)
        return
    place = rng.randrange(len(data))
    match rng.randrange(6):
        case 0:
            data[place] ^= 1 << rng.randrange(8)
        case 1:
            number = rng.choice(INTERESTING)
            data[place : place + len(number)] = number
        case 2:
            del data[place:]
        case 3:
            del data[place : place + rng.randrange(1, 9)]
        case 4:
            piece = data[place : place + rng.randrange(1, 65)]
            data[place:place] = piece * rng.choice([1, 2, 100])
        case _:
            data[place:place] = rng.randbytes(rng.randrange(1, 17))
