"""The ops of a step of generation."""

import numpy as np

from dtypes import FLOATS


def add_to(cases):
    add_cached_attention(cases)
    add_fused_linear(cases)
    add_next_token(cases)


def add_cached_attention(cases):
    shapes = {
        "": (2, 2, 2, 1, 8, 5, 0),
        "grouped": (2, 6, 2, 2, 8, 7, 0),
        "odd": (1, 3, 1, 3, 5, 4, 0),
        "window": (3, 4, 2, 2, 8, 9, 3),
    }
    for label, (texts, heads, groups, new, depth, capacity, window) in shapes.items():

        def inputs(s):
            rows, cache = (texts, groups, new, depth), (texts, groups, capacity, depth)
            read = s.index(texts, limit=capacity - new + 1, dtype="i32")
            return [s.real(texts, heads, new, depth), s.real(*rows), s.real(*rows), s.real(*cache), s.real(*cache), read]

        attributes = {"scale": 0.4, "window": window}
        cases.add("cached_attention", label, attributes, inputs, FLOATS, length=depth + capacity)


def add_fused_linear(cases):
    for label, norm, activation, bias, residual, quantized in (
        ("plain", "none", "none", False, False, False),
        ("sum", "none", "none", True, True, False),
        ("layer_norm", "layer", "gelu", True, False, False),
        ("rms_norm", "rms", "silu", False, True, False),
        ("all", "layer", "tanh", True, True, False),
        ("quantized", "none", "none", False, False, True),
        ("quantized/all", "layer", "gelu", True, True, True),
    ):
        attributes = {
            "norm": norm,
            "eps": 1e-3,
            "activation": activation,
            "bias": bias,
            "residual": residual,
            "quantized": quantized,
        }

        def inputs(s):
            weight = s.index(5, 16, low=-127, limit=128, dtype="i8") if quantized else s.real(5, 16)
            made = [s.real(1 if quantized else 3, 16), weight]
            made += [s.positive(5, dtype="f32") / 127] if quantized else []
            made += [s.real(16) for _ in range({"none": 0, "layer": 2, "rms": 1}[norm])]
            return made + ([s.real(5)] if bias else []) + ([s.real(len(made[0]), 5)] if residual else [])

        cases.add("fused_linear", label, attributes, inputs, FLOATS, length=16)


def add_next_token(cases):
    for label, temperature, top_k, top_p, penalty, vocabulary in (
        ("plain", 1.0, 0, 1.0, 1.0, 0),
        ("greedy", 0.0, 0, 1.0, 1.0, 0),
        ("penalty", 0.7, 0, 1.0, 1.5, 0),
        ("top_k", 0.8, 7, 1.0, 1.0, 0),
        ("top_p", 1.2, 0, 0.6, 1.0, 0),
        ("all", 1.0, 9, 0.5, 1.2, 30),
    ):
        attributes = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "repetition_penalty": penalty,
            "vocabulary": vocabulary,
        }

        def inputs(s):
            scores = s.real(8, 40)
            scores[7, 3] = np.nan
            text = s.index(8, 6, low=-1, limit=1, dtype="i32")  # 0: given, -1: to be drawn
            return [
                scores,
                text,
                s.index(8, limit=5, dtype="i32"),
                s.real(8, 6, low=0.01, high=0.99, dtype="f64"),
                s.boolean(8, 40),
            ]

        cases.add("next_token", label, attributes, inputs, FLOATS)
