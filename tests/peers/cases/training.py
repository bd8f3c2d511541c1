"""The optimiser steps."""

from dtypes import FLOATS


def add_to(cases):
    shapes = ((3, 4), (5,), ())

    def tensors(s, states, positive_last=False, clip=0.75):
        """Parameters, gradients, states (f32, or f64 for f64) and the clip factor."""
        wide = "f64" if s.dtype == "f64" else "f32"
        made = [s.real(*shape) for _ in range(2) for shape in shapes]
        for state in range(states):
            last = positive_last and state == states - 1
            made += [(s.positive if last else s.real)(*shape, dtype=wide) for shape in shapes]
        return made + [s.of(clip, wide)]

    for label, momentum, nesterov, decay in (
        ("plain", 0.0, False, 0.0),
        ("decay", 0.0, False, 0.1),
        ("momentum", 0.9, False, 0.0),
        ("nesterov", 0.9, True, 0.05),
    ):
        attributes = {"lr": 0.125, "momentum": momentum, "nesterov": nesterov, "weight_decay": decay}
        cases.add("sgd", label, attributes, lambda s: tensors(s, 1), FLOATS)
        cases.add("sgd", f"{label}/skipped", attributes, lambda s: tensors(s, 1, clip=-1.0), FLOATS)
    for label, decay, decoupled, step in (
        ("adam", 0.0, False, 1),
        ("adam_decay", 0.1, False, 7),
        ("adamw", 0.01, True, 1),
        ("adamw_late", 0.1, True, 10000),
    ):
        attributes = {
            "lr": 0.01,
            "beta1": 0.9,
            "beta2": 0.999,
            "eps": 1e-8,
            "weight_decay": decay,
            "decoupled": decoupled,
            "step": step,
        }
        cases.add("adam", label, attributes, lambda s: tensors(s, 2, positive_last=True), FLOATS)
        skipped = lambda s: tensors(s, 2, positive_last=True, clip=-1.0)
        cases.add("adam", f"{label}/skipped", attributes, skipped, FLOATS)
