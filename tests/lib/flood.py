"""A program that prints much, and what of it must arrive."""

import functools
import hashlib

MIB = 1 << 20
SIZE = 64 * MIB


def flood(size):
    """Numbered lines: what is lost, doubled or in the wrong place shows."""
    return f"seq 1 100000000 | head -c {size}"


FLOOD = flood(SIZE)


@functools.cache
def expected(size=SIZE):
    """The digest of what the program prints."""
    sha, number, done = hashlib.sha256(), 1, 0
    while done < size:
        block = "".join(f"{i}\n" for i in range(number, number + 100000)).encode()[: size - done]
        sha.update(block)
        number, done = number + 100000, done + len(block)
    return sha.hexdigest()


def digest(data):
    return hashlib.sha256(data).hexdigest()
