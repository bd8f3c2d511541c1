"""The ops of a step of generation, text by text."""

import numpy as np
from scipy import special

from dtypes import round_to, widen
from numpy_oracle.elementwise import UNARY
from numpy_oracle.registry import oracle


@oracle("cached_attention")
def cached_attention(case, q, k, v, keys, values, read):
    stored = [cache.copy() for cache in (keys, values)]
    texts, heads, new, _ = q.shape
    shared = heads // keys.shape[1]
    o = np.empty_like(q)
    for n in range(texts):
        begin, end = read[n], read[n] + new
        for cache, rows in zip(stored, (k, v)):
            cache[n, :, begin:end] = widen(round_to(rows[n], case.dtypes[3]))
        for h in range(heads):
            key, value = (cache[n, h // shared, :end] for cache in stored)
            scores = q[n, h] @ key.T * case["scale"]
            seen = np.tri(new, end, begin, dtype=bool)
            if case["window"]:
                seen &= ~np.tri(new, end, begin - case["window"], dtype=bool)
            scores = np.where(seen, scores, -np.inf)
            o[n, h] = special.softmax(scores, axis=-1) @ value
    return [(o, case.dtypes[0]), (stored[0], case.dtypes[3]), (stored[1], case.dtypes[3])]


@oracle("fused_linear")
def fused_linear(case, x, weight, *rest):
    rest = list(rest)
    if case["quantized"]:
        weight = weight * rest.pop(0)[:, None]
    if case["norm"] == "layer":
        centred = x - np.mean(x, axis=1, keepdims=True)
        x = centred / np.sqrt(np.mean(centred**2, axis=1, keepdims=True) + case["eps"]) * rest.pop(0) + rest.pop(0)
    elif case["norm"] == "rms":
        x = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + case["eps"]) * rest.pop(0)
    y = x @ weight.T
    if case["bias"]:
        y = y + rest.pop(0)
    name = case["activation"]
    if name != "none":
        y = UNARY["gelu_tanh" if name == "gelu" else name](y, 1)
    return [(y + rest.pop(0) if case["residual"] else y, case.dtypes[0])]


def drawn(case, scores, seen, uniform):
    """The token for one row of scores; -1 if there is none."""
    scores = scores.astype(np.float32)[: case["vocabulary"] or None]
    seen = seen[: scores.size]
    penalty = np.float32(case["repetition_penalty"])
    scores = np.where(seen, np.where(scores > 0, scores / penalty, scores * penalty), scores).astype(np.float64)
    if np.any(np.isnan(scores)) or not np.isfinite(scores.max()):
        return -1
    if case["temperature"] == 0:
        return int(np.argmax(scores))
    order = np.argsort(-scores, kind="stable")[: case["top_k"] or None]
    weights = np.exp((scores[order] - scores.max()) / case["temperature"])
    before = np.cumsum(weights) - weights
    kept = order[before < case["top_p"] * weights.sum()] if case["top_p"] < 1 else order
    kept = np.sort(kept)
    sums = np.cumsum(np.exp((scores[kept] - scores.max()) / case["temperature"]))
    return int(kept[min(np.searchsorted(sums, uniform * sums[-1], side="right"), kept.size - 1)])


@oracle("next_token")
def next_token(case, scores, text, read, uniforms, seen):
    text, seen, ids = text.copy(), seen.copy(), np.empty(len(read), np.int64)
    for n, place in enumerate(read + 1):
        if text[n, place] < 0:
            text[n, place] = drawn(case, scores[n], seen[n], uniforms[n, place])
        ids[n] = text[n, place]
        if ids[n] >= 0:
            seen[n, ids[n]] = True
    return [(text, "i32"), (read + 1, "i32"), (seen, "bool"), (ids, "i32")]
