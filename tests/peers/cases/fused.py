"""Softmax, normalisations, linear, attention, losses, dropout."""

import numpy as np

from case import Case
from dtypes import FLOATS, INTEGERS, round_to
from numpy_oracle import evaluate


def add_to(cases):
    add_softmax(cases)
    add_norms(cases)
    add_linear(cases)
    add_activation_backward(cases)
    add_attention(cases)
    add_self_attention(cases)
    add_cross_attention(cases)
    add_rope(cases)
    add_gated_activation(cases)
    add_losses(cases)
    add_dropout(cases)


def forward(op, attributes, inputs):
    """What the forward op gives, rounded: the saved tensors that a backward op gets."""
    return [round_to(values, dtype) for values, dtype in evaluate(Case("", op, attributes, inputs))]


def add_softmax(cases):
    for op in ("softmax", "log_softmax"):
        for axis, length in ((-1, 5), (1, 4), (0, 3)):
            attributes = {"axis": axis}
            cases.add(op, str(axis), attributes, lambda s: [s.real(3, 4, 5)], FLOATS, grad=True, length=length)

            def saved(s):
                s.context["x"] = s.real(3, 4, 5)
                return [*forward(op, attributes, [s.context["x"]]), s.real(3, 4, 5)]

            cases.add(f"{op}_backward", str(axis), attributes, saved, FLOATS, length=length)
        last = {"axis": -1}
        cases.add(op, "wide", last, lambda s: [s.real(3, 1037, low=-8.0, high=8.0)], FLOATS, length=1037)
        cases.add(op, "long_axis_0", {"axis": 0}, lambda s: [s.real(517, 3, low=-8.0, high=8.0)], FLOATS, length=517)
        cases.add(op, "one", last, lambda s: [s.real(3, 1)], ["f32", "f64"], grad=True)
        cases.add(op, "no_rows", last, lambda s: [s.real(0, 4)], ["f32"])
        rows = [[1e4, 9.99e3, -1e4], [-np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf], [np.nan, 0.0, 1.0]]
        cases.add(op, "special", last, lambda s: [s.of(rows)], FLOATS, length=3)
    # log_softmax of +inf is left out: SciPy says (NaN, -inf, -inf), PyTorch and ferrite NaN throughout.
    cases.add("softmax", "infinity", {"axis": -1}, lambda s: [s.of([[np.inf, 0.0, 1.0]])], FLOATS, length=3)


def add_norms(cases):
    shapes = {"": (3, 4, 6), "wide": (5, 1031), "2d": (7, 3)}
    for label, shape in shapes.items():
        eps, channels, rows = {"eps": 1e-5}, shape[-1], int(np.prod(shape[:-1]))
        affine = lambda s, count: [s.real(channels) for _ in range(count)]
        layer = lambda s: [s.real(*shape), *affine(s, 2)]
        cases.add("layer_norm", label, eps, layer, FLOATS, grad=label != "wide", length=channels)
        rms = lambda s: [s.real(*shape), *affine(s, 1)]
        cases.add("rms_norm", label, eps, rms, FLOATS, grad=label != "wide", length=channels)

        def layer_backward(s):
            x, weight, bias = layer(s)
            s.context["eps"] = 1e-5
            return [s.real(*shape), x, weight, *forward("layer_norm", eps, [x, weight, bias])[1:]]

        def rms_backward(s):
            x, weight = rms(s)
            s.context["eps"] = 1e-5
            return [s.real(*shape), x, weight, *forward("rms_norm", eps, [x, weight])[1:]]

        cases.add("layer_norm_backward", label, {}, layer_backward, FLOATS, length=max(channels, rows))
        cases.add("rms_norm_backward", label, {}, rms_backward, FLOATS, length=max(channels, rows))
    offset = lambda s: [s.of(500 + s.rng.integers(0, 9, (4, 64))), s.real(64), s.real(64)]
    cases.add("layer_norm", "offset", {"eps": 1e-3}, offset, ["f32", "f64", "f16"], length=64)
    cases.add(
        "layer_norm",
        "constant_rows",
        {"eps": 1e-5},
        lambda s: [s.of(np.full((2, 8), 3.0)), s.real(8), s.real(8)],
        FLOATS,
        length=8,
    )
    mixed = lambda s: [s.real(3, 6), s.real(6, dtype="f32"), s.real(6, dtype="f32")]
    cases.add("layer_norm", "mixed", {"eps": 1e-5}, mixed, ["f16", "bf16"], length=6)
    cases.add("rms_norm", "mixed", {"eps": 1e-5}, lambda s: mixed(s)[:2], ["f16", "bf16"], length=6)

    for label, shape in {"2d": (6, 3), "4d": (4, 3, 2, 5), "3d": (2, 5, 37)}.items():
        eps, count = {"eps": 1e-5}, int(np.prod(shape)) // shape[1]
        batch = lambda s: [s.real(*shape), s.real(shape[1]), s.real(shape[1])]
        cases.add("batch_norm", label, eps, batch, FLOATS, grad=True, length=count)

        def batch_backward(s):
            x, weight, bias = batch(s)
            s.context["eps"] = 1e-5
            return [s.real(*shape), x, weight, *forward("batch_norm", eps, [x, weight, bias])[1:]]

        cases.add("batch_norm_backward", label, {}, batch_backward, FLOATS, length=count)


def add_linear(cases):
    for activation in ("none", "relu", "gelu", "silu", "tanh", "sigmoid"):
        attributes = {"activation": activation}
        inputs = lambda s: [s.real(5, 4), s.real(3, 4), s.real(3)]
        cases.add("linear", activation, attributes, inputs, FLOATS, grad=True, length=4)
        cases.add(
            "linear", f"{activation}/no_bias", attributes, lambda s: inputs(s)[:2], ["f32", "f64"], grad=True, length=4
        )
        wide = lambda s: [s.real(33, 130), s.real(70, 130), s.real(70)]
        cases.add("linear", f"{activation}/wide", attributes, wide, FLOATS, length=130)

    def add_residual(label, n, i, o, grad):
        for suffix, shapes in (("", [(n, i), (o, i), (o,), (n, o)]), ("/no_bias", [(n, i), (o, i), (n, o)])):
            inputs = lambda s: [s.real(*shape) for shape in shapes]
            cases.add("linear", label + suffix, {"activation": "none"}, inputs, FLOATS, grad=grad, length=i)

    add_residual("residual", 5, 4, 3, grad=True)
    add_residual("residual/wide", 33, 130, 70, grad=False)
    cases.add("linear", "empty", {"activation": "relu"}, lambda s: [s.real(0, 4), s.real(3, 4), s.real(3)], ["f32"])


def add_activation_backward(cases):
    for fn in ("relu", "gelu_tanh", "silu"):
        attributes = {"fn": fn, "alpha": 1.0}
        cases.add("activation_backward", fn, attributes, lambda s: [s.real(5, 16), s.real(5, 16)], FLOATS, length=5)


def add_self_attention(cases):
    for label, causal, window in (("plain", False, 0), ("causal", True, 0), ("window", True, 2)):
        attributes = {"causal": causal, "scale": 0.5, "window": window}
        packed = lambda s: [s.real(2, 5, 3, 2, 4)]
        cases.add("self_attention", label, attributes, packed, FLOATS, grad=True, length=9)

        def backward(s, attributes=attributes):
            inputs = packed(s)
            o, lse = forward("self_attention", attributes, inputs)
            return [s.real(*o.shape), *inputs, o, lse]

        cases.add("self_attention_backward", label, attributes, backward, FLOATS, length=14)


def add_cross_attention(cases):
    for label, causal, window, masked in (("plain", False, 0, False), ("window", True, 3, False), ("mask", False, 0, True)):
        attributes = {"causal": causal, "scale": 0.5, "window": window}

        def inputs(s, masked=masked):
            return [s.real(2, 5, 4, 3), s.real(2, 6, 2, 3), s.real(2, 6, 2, 4)] + ([s.real(5, 6)] if masked else [])

        cases.add("cross_attention", label, attributes, inputs, FLOATS, grad=not masked, length=9)

        def backward(s, attributes=attributes, inputs=inputs):
            given = inputs(s)
            o, lse = forward("cross_attention", attributes, given)
            return [s.real(*o.shape), *given[:3], o, lse, *given[3:]]

        cases.add("cross_attention_backward", label, attributes, backward, FLOATS, length=14)


def add_rope(cases):
    def add(label, shape, axis=-3, start=0, inverse=False, positions=None, dtypes=FLOATS, theta=100.0):
        frequencies = theta ** -(np.arange(0, shape[-1], 2) / shape[-1])
        for pairs in ("halves", "neighbours"):
            attributes = {"axis": axis, "start": start, "pairs": pairs, "inverse": inverse}

            def inputs(s):
                table = s.of(frequencies, "f64" if s.dtype == "f64" else "f32")
                s.context["constants"] = (1,)
                return [s.real(*shape), table] + ([np.array(positions)] if positions else [])

            cases.add("rope", f"{label}/{pairs}", attributes, inputs, dtypes, grad=True, length=2)

    add("heads_inside", (2, 5, 3, 8))
    add("heads_outside", (2, 3, 5, 6), axis=-2, start=7)
    add("axis_0", (4, 2), axis=0)
    add("inverse", (2, 5, 3, 8), inverse=True)
    add("positions", (1, 4, 2, 16), positions=[3, 0, 9, 5])
    # Far enough for f32 angles to be coarse: their bits are part of the definition.
    add("far", (1, 2, 2, 8), start=131070, theta=500000.0, dtypes=["f64"])


def add_gated_activation(cases):
    for activation in ("none", "relu", "gelu", "silu", "tanh", "sigmoid"):
        attributes = {"activation": activation}
        inputs = lambda s: [s.real(3, 5), s.real(3, 5)]
        cases.add("gated_activation", activation, attributes, inputs, FLOATS, grad=True, length=2)
        wide = lambda s: [s.real(7, 320, low=-9.0, high=9.0), s.real(7, 320)]
        cases.add("gated_activation", f"{activation}/wide", attributes, wide, FLOATS, length=2)
        backward = lambda s: [s.real(3, 8), s.real(3, 8), s.real(3, 8)]
        cases.add("gated_activation_backward", activation, attributes, backward, FLOATS, length=2)


def add_attention(cases):
    def add(
        label,
        attributes,
        masks,
        shapes=((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 3)),
        dtypes=FLOATS,
        grad=True,
        torch=True,
    ):
        qkv = lambda s: [s.real(*shape) for shape in shapes]
        length = shapes[0][3] + shapes[1][2]
        cases.add(
            "attention", label, attributes, lambda s: qkv(s) + masks(s), dtypes, grad=grad, torch=torch, length=length
        )

        def backward(s):
            inputs = qkv(s) + masks(s)
            o, lse = forward("attention", attributes, inputs)
            return [s.real(*o.shape), *inputs[:3], o, lse, *inputs[3:]]

        cases.add("attention_backward", label, attributes, backward, dtypes, torch=torch, length=length + shapes[0][2])

    none, plain = lambda s: [], {"causal": False, "scale": 0.5, "window": 0}
    causal = {**plain, "causal": True}
    add("plain", plain, none)
    add("causal", causal, none)
    add("scale", {**plain, "scale": 0.2}, none)
    keeps_first = lambda s: [s.boolean(2, 1, 5, 6) | (np.arange(6) == 0)]
    add("bool_mask", plain, keeps_first)
    add("causal_bool_mask", causal, keeps_first)
    add("additive_mask", plain, lambda s: [s.real(5, 6)])
    add("square_causal", causal, none, ((1, 2, 7, 4),) * 3)
    add("one_query", causal, none, ((1, 2, 1, 4), (1, 2, 9, 4), (1, 2, 9, 4)))
    # Heads of queries that share keys and values, and windows: two-sided, and of the last keys.
    grouped = ((2, 4, 5, 4), (2, 2, 6, 4), (2, 2, 6, 3))
    add("grouped", causal, none, grouped)
    add("grouped_mask", plain, keeps_first, grouped)
    add("multi_query", plain, none, ((2, 3, 5, 4), (2, 1, 6, 4), (2, 1, 6, 3)))
    add("window", {**plain, "window": 3}, none)
    add("window_causal", {**causal, "window": 2}, none, grouped)
    add("window_mask", {**causal, "window": 3}, lambda s: [s.boolean(2, 1, 5, 6) | np.eye(5, 6, 1, dtype=bool)])
    many = ((1, 4, 70, 16), (1, 2, 150, 16), (1, 2, 150, 8))
    add("window_long", {"causal": True, "scale": 0.25, "window": 40}, none, many, grad=False)
    add("long", {**causal, "scale": 0.25}, none, ((1, 1, 70, 16), (1, 1, 150, 16), (1, 1, 150, 8)), grad=False)
    # Queries that see no key give 0: by causality with fewer keys than queries, and by the mask.
    add("no_key_causal", causal, none, ((1, 1, 5, 4), (1, 1, 3, 4), (1, 1, 3, 4)), torch=False, grad=False)
    add("no_key_masked", plain, lambda s: [np.arange(5).reshape(5, 1) % 2 == np.zeros((1, 6))], torch=False, grad=False)
    add("minus_infinity", plain, lambda s: [s.of(np.where(np.tri(5, 6), 0.0, -np.inf))], grad=False)


def add_losses(cases):
    def cross_entropy(
        label, attributes, rows=6, classes=5, padding=0, targets=INTEGERS, dtypes=FLOATS, low=-2.0, high=2.0
    ):
        attributes = {**attributes, "classes": classes if padding else 0}
        for dtype in targets:
            pick = lambda s: s.index(rows, limit=min(classes, 256), dtype=dtype)
            logits = lambda s: s.real(rows, classes + padding, low=low, high=high)
            name, floats = f"{label}/{dtype}", dtypes if dtype == "i64" else ["f32"]
            cases.add(
                "softmax_cross_entropy",
                name,
                attributes,
                lambda s: [logits(s), pick(s)],
                floats,
                grad=classes < 100,
                length=classes,
            )

            def backward(s):
                inputs = [logits(s), pick(s)]
                s.context["autograd_length"] = classes  # PyTorch sums the target distribution, ferrite knows it is 1
                lse = forward("softmax_cross_entropy", attributes, inputs)[1]
                return [s.real(rows, dtype="f64" if s.dtype == "f64" else "f32"), *inputs, lse]

            cases.add("softmax_cross_entropy_backward", name, attributes, backward, floats, length=1)

            def with_scale(s):
                s.context["autograd_length"] = classes
                return [logits(s), pick(s), s.of(np.array(0.75), dtype="f64" if s.dtype == "f64" else "f32")]

            cases.add("softmax_cross_entropy_with_gradient", name, attributes, with_scale, floats, length=classes)
            for mean in (True, False):
                for gradient in (True, False):
                    cases.add(
                        "cross_entropy_loss",
                        f"{name}/{'mean' if mean else 'sum'}{'/gradient' if gradient else ''}",
                        {**attributes, "mean": mean, "with_gradient": gradient},
                        lambda s: [logits(s), pick(s)],
                        floats,
                        grad=classes < 100 and not gradient,
                        length=classes * rows,
                    )

    cross_entropy("plain", {"ignore_index": -100, "label_smoothing": 0.0})
    cross_entropy("ignore", {"ignore_index": 2, "label_smoothing": 0.0})
    cross_entropy("smoothing", {"ignore_index": -100, "label_smoothing": 0.1})
    cross_entropy("both", {"ignore_index": 0, "label_smoothing": 0.25}, rows=11)
    cross_entropy("wide", {"ignore_index": -1, "label_smoothing": 0.125}, rows=9, classes=1031, low=-9.0, high=9.0)
    cross_entropy("padded", {"ignore_index": 1, "label_smoothing": 0.125}, rows=7, classes=13, padding=3)
    cross_entropy("large_logits", {"ignore_index": -100, "label_smoothing": 0.0}, low=-2e4, high=2e4, targets=["i64"])

    def linear_cross_entropy(label, classes=0, chunk_rows=0, smoothing=0.0, mean=True):
        for gradient in (True, False):
            cases.add(
                "linear_cross_entropy",
                f"{label}{'/gradient' if gradient else ''}",
                {
                    "ignore_index": 2,
                    "label_smoothing": smoothing,
                    "mean": mean,
                    "classes": classes,
                    "chunk_rows": chunk_rows,
                    "with_gradient": gradient,
                },
                lambda s: [s.real(7, 3), s.real(9, 3), s.index(7, limit=classes or 9)],
                FLOATS,
                grad=not gradient,
                length=7 * 9,
            )

    linear_cross_entropy("plain")
    linear_cross_entropy("sum", mean=False)
    linear_cross_entropy("chunks", chunk_rows=3, smoothing=0.125)
    linear_cross_entropy("padded", chunk_rows=4, classes=6, smoothing=0.125)

    for fn in ("mse", "l1", "huber", "bce_with_logits"):
        attributes = {"fn": fn, "delta": 0.75}
        pair = lambda s: [s.real(4, 5, low=-3.0, high=3.0), s.real(4, 5, low=0.0, high=1.0)]
        cases.add("pointwise_loss", fn, attributes, pair, FLOATS, grad=True)
        cases.add("pointwise_loss_backward", fn, attributes, lambda s: [*pair(s), s.real(4, 5)], FLOATS)
        far = lambda s: [s.of([200.0, -200.0, 0.0, 30.0]), s.of([0.0, 1.0, 0.5, 1.0])]
        cases.add("pointwise_loss", f"{fn}/far", attributes, far, ["f32", "f64", "bf16"])


def add_dropout(cases):
    for p in (0.0, 0.25, 0.5, 0.9, 1.0):
        attributes = {"p": p, "seed": 0x1234567890ABCDEF, "stream": 3}
        cases.add("dropout", f"{p}", attributes, lambda s: [s.real(7, 11)], FLOATS, grad=True)
    large = {"p": 0.1, "seed": 1, "stream": 0xFFFFFFFF00000001}
    cases.add("dropout", "large", large, lambda s: [s.real(50021)], ["f32", "bf16"])
