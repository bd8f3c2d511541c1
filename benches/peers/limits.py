"""The speeds and errors that the GPU rows are held to, and whether a row reaches its own.

Kinds of limits: "peer" is PyTorch's time over ferrite's, "eager peer" the same against PyTorch's eager step, "copy" the
share of the copy bandwidth measured in the same run, "host copy" the time of copying the same bytes from pinned memory
over ferrite's, "seconds" a time. All but the last are lower limits.
"""

import re

ROWS = "(65536x768|8192x8192|8192x50304)"
LIMITS = [  # pattern of the whole name, kind, limit; the first that matches counts
    (r"matmul/(f32|tf32|bf16)/(2048|4096|8192)", "peer", 0.98),
    (r"eager/matmul/\w+/\d+", "peer", 2.0),
    (r"eager/add/f32/1024", "seconds", 3e-6),
    (r"call/(add|relu|gelu|sigmoid)/\w+/1M", "peer", 1.5),
    (r"call/(add|relu|gelu|sigmoid)/\w+/10M", "peer", 1.2),
    (r"(add|relu|gelu|sigmoid)/\w+/1M", "peer", 1.5),
    (r"(add|relu|gelu|sigmoid)/\w+/256M", "peer", 0.98),
    (r"lazy/chain8/f32/256M", "copy", 0.90),
    (r"compiled/chain8/f32/256M", "peer", 0.97),
    (r"(sum|max)/\w+/(rows|columns|all)/256M", "copy", 0.90),
    (r"(softmax|layer_norm|rms_norm)/\w+/" + ROWS, "copy", 0.85),
    (r"(softmax|layer_norm|rms_norm)_backward/\w+/" + ROWS, "copy", 0.75),
    (r"cross_entropy_both/bf16/32768x50304", "seconds", 2.2e-3),
    (r"linear_cross_entropy_both/bf16/65536x768x50304", "peer", 1.5),
    (r"attention(_backward)?/(bf16|f32)/.*", "peer", 1.0),
    (r"(conv2d|max_pool2d|batch_norm).*", "peer", 0.98),
    (r"(cholesky|solve|eigh|svd)/.*", "peer", 1.0),
    (r"adamw/f32/124M", "seconds", 0.95e-3),
    (r"pool/allocate_free/1MiB", "seconds", 0.3e-6),
    (r"tokenizer_fit/f32/\w+/10Mx20", "seconds", 3e-3),
    (r"tokenizer_transform/f32/\w+/10Mx20", "seconds", 0.4e-3),
    (r"tokenizer_fit_transform/f32/pinned/10Mx20", "host copy", 0.85),
    (r"priors/formula/1M", "seconds", 0.45e-3),
    (r"priors/mixture/1024x20/8192", "seconds", 8192 / 50_000),
    (r"priors/dlpack", "seconds", 10e-6),
    (r"launch/compile", "seconds", 60e-3),
    (r"launch/load", "seconds", 3e-3),
    (r"train/.*", "peer", 2.0),
    (r"train_graph/.*", "eager peer", 4.0),
]

# Against float64, at most this times PyTorch's error. Where the result is one number, half a unit in its last place is
# always good enough: PyTorch's may be exact by chance.
ERROR_LIMIT = 1.5
ONE_NUMBER = r"(sum|max)/\w+/all/.*|global_norm/.*"
ROUNDING = {"f32": 2.0**-24, "bf16": 2.0**-8}


def seconds(row, who):
    return (row.get(who) or {}).get("seconds")


def achieved(row, kind, rows, copy_rate):
    """The number that the limit is about; None where its parts were not measured."""
    ours = seconds(row, "cuda")
    if ours is None:
        return None
    if kind == "seconds":
        return ours
    if kind == "copy":
        return row["cuda"]["bytes"] / ours / copy_rate if copy_rate else None
    if kind == "host copy":
        copy = next((seconds(r, "cuda") for r in rows if r["name"] == "host_copy/f32/pinned/10Mx20"), None)
        return copy / ours if copy else None
    name = row["name"].replace("train_graph/", "train/") if kind == "eager peer" else row["name"]
    theirs = next((seconds(r, "torch") for r in rows if r["name"] == name), None)
    return theirs / ours if theirs else None


def judge(row, rows, copy_rate):
    """Adds "limit" to a row that has one: its kind, where it is at, the value and whether it is met (None: not measured)."""
    for pattern, kind, limit in LIMITS:
        if re.fullmatch(pattern, row["name"]):
            value = achieved(row, kind, rows, copy_rate)
            met = None if value is None else value <= limit if kind == "seconds" else value >= limit
            row["limit"] = {"kind": kind, "at": limit, "value": value, "met": met}
            break
    ours, theirs = row.get("cuda") or {}, row.get("torch") or {}
    if "error" in ours and "error" in theirs:
        limit = ERROR_LIMIT * (theirs["error"] or 0)
        if re.fullmatch(ONE_NUMBER, row["name"]):
            limit = max(limit, ROUNDING[row["name"].split("/")[1]])
        row["error_met"] = ours["error"] is not None and ours["error"] <= limit
