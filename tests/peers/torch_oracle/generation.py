"""The ops of a step of generation."""

import torch
import torch.nn.functional as F

from torch_oracle.elementwise import UNARY
from torch_oracle.registry import oracle


@oracle("cached_attention")
def cached_attention(case, q, k, v, keys, values, read):
    keys, values, new = keys.clone(), values.clone(), q.shape[2]
    o = torch.empty_like(q)
    for n, begin in enumerate(read.tolist()):
        end = begin + new
        keys[n, :, begin:end], values[n, :, begin:end] = k[n], v[n]
        mask = torch.ones(new, end, dtype=torch.bool).tril(begin)
        if case["window"]:
            mask = mask.triu(begin - case["window"] + 1)
        o[n] = F.scaled_dot_product_attention(
            q[n], keys[n, :, :end], values[n, :, :end], attn_mask=mask, scale=case["scale"], enable_gqa=True
        )
    return o, keys, values


@oracle("fused_linear")
def fused_linear(case, x, weight, *rest):
    rest = list(rest)
    scale = rest.pop(0).double()[:, None] if case["quantized"] else None
    if case["norm"] == "layer":
        x = F.layer_norm(x, weight.shape[1:], rest.pop(0), rest.pop(0), case["eps"])
    elif case["norm"] == "rms":
        x = F.rms_norm(x, weight.shape[1:], rest.pop(0), case["eps"])
    bias = rest.pop(0) if case["bias"] else None
    if case["quantized"]:
        y = F.linear(x.double(), weight.double() * scale, None if bias is None else bias.double())
    else:
        y = F.linear(x, weight, bias)
    name = case["activation"]
    if name != "none":
        y = UNARY["gelu_tanh" if name == "gelu" else name](y, 1)
    y = y.to(x.dtype)
    return y + rest.pop(0) if case["residual"] else y


def drawn(case, scores, seen, uniform):
    """As the samplers of language models do it: with a sort."""
    scores = scores.float()[: case["vocabulary"] or None].clone()
    seen, penalty = seen[: len(scores)], case["repetition_penalty"]
    scores[seen] = torch.where(scores[seen] > 0, scores[seen] / penalty, scores[seen] * penalty)
    if not torch.isfinite(scores.max()):
        return -1
    if case["temperature"] == 0:
        return int(torch.argmax(scores))
    values, order = torch.sort(scores.double() / case["temperature"], descending=True, stable=True)
    if case["top_k"]:
        values[case["top_k"] :] = -torch.inf
    share = F.softmax(values, dim=0)
    share[torch.cumsum(share, 0) - share >= case["top_p"]] = 0
    by_id = torch.zeros_like(share).scatter(0, order, share)
    sums = torch.cumsum(by_id, 0)
    return int(torch.searchsorted(sums, uniform * sums[-1], right=True))


@oracle("next_token")
def next_token(case, scores, text, read, uniforms, seen):
    text, seen, places = text.clone(), seen.clone(), read + 1
    for n, place in enumerate(places.tolist()):
        if text[n, place] < 0:
            text[n, place] = drawn(case, scores[n], seen[n], uniforms[n, place])
        if text[n, place] >= 0:
            seen[n, text[n, place]] = True
    return text, places, seen, text[torch.arange(len(places)), places]
