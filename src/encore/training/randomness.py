"""The source of all chance: a stream is a function of the seed and its use, never of what was drawn before.

So masks, spans and orders do not depend on workers, on batches or on an interruption, and no state needs to be saved.
"""

import hashlib

import numpy as np


def number(seed: int, *key: str | int) -> int:
    """A 63-bit number for this use of the seed, such as ``number(seed, "heads")``."""
    text = "/".join(map(str, (seed, *key)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """A generator for this use of the seed, such as ``generator(seed, "example", epoch, index)``."""
    return np.random.Generator(np.random.PCG64(number(seed, *key)))


def epoch_order(length: int, batch: int, seed: int, epoch: int) -> np.ndarray:
    """The examples of an epoch in order, [batches, batch] int64: a function of the seed and the epoch.

    A permutation of all, wherever they lie on disk. The last batch is filled up from its beginning, so that every
    contrast has as many negatives as the others and no example is twice in a batch. With fewer examples than a batch
    holds, a batch is all of them.
    """
    return in_batches(generator(seed, "order", epoch).permutation(length), batch)


def in_batches(order: np.ndarray, batch: int) -> np.ndarray:
    """Examples [n] in their order as [batches, batch], the last batch filled up from the beginning."""
    batch = min(batch, len(order))
    rows = -(-len(order) // batch)
    return np.append(order, order[: rows * batch - len(order)]).reshape(rows, batch)


def mixed(values: np.ndarray) -> np.ndarray:
    """Each value, uint64 [n], mapped to one that looks random; different values stay different.

    It is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))
