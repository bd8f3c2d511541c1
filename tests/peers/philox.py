"""Philox4x32-10 and ferrite's rules from words to values, written from include/ferrite/core/rng.hpp in NumPy."""

import numpy as np

from dtypes import round_to

# Known answers of the authors (Random123, kat_vectors): counter, key, block.
KNOWN_ANSWERS = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]
MASK = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)


def philox4x32(counter, key):
    """counter [n, 4], key [2], all 32-bit values in uint64 -> words [n, 4]."""
    c = [np.asarray(column, dtype=np.uint64) for column in np.asarray(counter, dtype=np.uint64).T]
    k0, k1 = int(key[0]), int(key[1])
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (p1 >> SHIFT) ^ c[1] ^ np.uint64(k0),
            p1 & MASK,
            (p0 >> SHIFT) ^ c[3] ^ np.uint64(k1),
            p0 & MASK,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, axis=1)


def check_known_answers():
    for counter, key, words in KNOWN_ANSWERS:
        if philox4x32([counter], key)[0].tolist() != words:
            raise AssertionError("the NumPy Philox differs from the published vectors")


def blocks(seed, stream, count):
    """The first `count` blocks of a sequence, [count, 4]."""
    index = np.arange(count, dtype=np.uint64)
    low, high = np.uint64(stream & 0xFFFFFFFF), np.uint64(stream >> 32)
    counter = np.stack([index & MASK, index >> SHIFT, np.full_like(index, low), np.full_like(index, high)], axis=1)
    return philox4x32(counter, (seed & 0xFFFFFFFF, seed >> 32))


def words(seed, stream, count):
    """32-bit word i of the sequence, for i < count."""
    return blocks(seed, stream, -(-count // 4)).reshape(-1)[:count]


def wide_words(seed, stream, count):
    """64-bit word i: words 2i and 2i + 1, low half first."""
    pairs = blocks(seed, stream, -(-count // 2)).reshape(-1, 2)[:count]
    return pairs[:, 0] | pairs[:, 1] << SHIFT


def unit_uniform(dtype, seed, stream, count):
    """In [0, 1), with as many bits as the dtype's significand holds."""
    if dtype == "f64":
        return (wide_words(seed, stream, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    bits = {"f32": 24, "f16": 11, "bf16": 8}[dtype]
    return (words(seed, stream, count) >> np.uint64(32 - bits)).astype(np.float64) * 2.0**-bits


def uniform(dtype, seed, stream, count, low, high):
    """Stretched to [low, high) and rounded once; a value that rounds up to `high` becomes `low`."""
    values = round_to(low + unit_uniform(dtype, seed, stream, count) * (high - low), dtype).astype(np.float64)
    return np.where(values < high, values, low)


def normal(dtype, seed, stream, count):
    """Box-Muller. The inputs of the functions are rounded to float32, or not at all for f64."""
    rounded = np.float64 if dtype == "f64" else np.float32
    pairs = blocks(seed, stream, -(-count // 4)).reshape(-1, 2)
    u = (pairs[:, 0] + np.uint64(1)).astype(rounded) * rounded(2.0**-32)
    theta = pairs[:, 1].astype(rounded) * rounded(2 * np.pi * 2.0**-32)
    r = np.sqrt(-2 * np.log(u.astype(np.float64)))
    theta = theta.astype(np.float64)
    return np.stack([r * np.cos(theta), r * np.sin(theta)], axis=1).reshape(-1)[:count]


def bernoulli(seed, stream, count, p):
    return unit_uniform("f32", seed, stream, count) < float(np.float32(p))


def integer(seed, stream, count, low, high):
    return np.array([low + (int(w) * (high - low) >> 64) for w in wide_words(seed, stream, count)], dtype=np.int64)
