"""Linear with a weight of 8 bits."""

from dtypes import FLOATS
from numpy_oracle.elementwise import UNARY
from numpy_oracle.registry import oracle


@oracle("quantized_linear")
def quantized_linear(case, x, weight, scale, bias=0.0):
    pre = x @ weight.T * scale + bias
    name = case["activation"]
    y = pre if name == "none" else UNARY["gelu_tanh" if name == "gelu" else name](pre, 1)
    return [(y, case.dtypes[0])]


def inputs_of(rows, columns, inner):
    def inputs(s):
        weight = s.index(columns, inner, low=-127, limit=128, dtype="i8")
        return [s.real(rows, inner), weight, s.positive(columns, dtype="f32") / 127, s.real(columns)]

    return inputs


def add_to(cases):
    for activation in ("none", "relu", "gelu", "silu", "tanh", "sigmoid"):
        attributes = {"activation": activation}
        small = inputs_of(5, 3, 4)
        cases.add("quantized_linear", activation, attributes, small, FLOATS, grad=True, length=4)
        # One row and a few, many rows, and lengths that no vector divides.
        for rows, columns, inner in ((1, 130, 96), (4, 9, 48), (7, 33, 1031), (16, 64, 32), (33, 70, 130)):
            label = f"{activation}/{rows}x{columns}x{inner}"
            inputs = inputs_of(rows, columns, inner)
            cases.add("quantized_linear", label, attributes, inputs, FLOATS, length=inner)
    none = {"activation": "none"}
    cases.add("quantized_linear", "no_bias", none, lambda s: inputs_of(3, 5, 20)(s)[:3], FLOATS, length=20)
    cases.add("quantized_linear", "no_rows", none, inputs_of(0, 3, 4), ["f32"])
    cases.add("quantized_linear", "no_inner", none, inputs_of(2, 3, 0), ["f32"])
