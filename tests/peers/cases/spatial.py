"""Convolutions and pools."""

import numpy as np

from case import EXACT
from cases.fused import forward
from dtypes import FLOATS


def add_to(cases):
    add_convolutions(cases)
    add_pools(cases)


def add_convolutions(cases):
    def add(label, x, weight, bias=False, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
        geometry = {"stride": list(stride), "padding": list(padding), "dilation": list(dilation), "groups": groups}
        inputs = lambda s: [s.real(*x), s.real(*weight)] + ([s.real(weight[0])] if bias else [])
        length = int(np.prod(weight[1:]))
        cases.add("conv2d", label, geometry, inputs, FLOATS, grad=True, length=length)
        y = forward("conv2d", geometry, [np.zeros(x, np.float32), np.zeros(weight, np.float32)])[0].shape
        per_input = weight[0] // groups * weight[2] * weight[3]
        for_input = {**geometry, "input": list(x)}
        cases.add(
            "conv2d_input_grad", label, for_input, lambda s: [s.real(*y), s.real(*weight)], FLOATS, length=per_input
        )
        for_weight = {**geometry, "weight": list(weight)}
        cases.add(
            "conv2d_weight_grad",
            label,
            for_weight,
            lambda s: [s.real(*y), s.real(*x)],
            FLOATS,
            length=y[0] * y[2] * y[3],
        )

    x = (2, 4, 6, 5)
    add("plain", x, (3, 4, 3, 2))
    add("bias", x, (3, 4, 3, 2), bias=True)
    add("1x1", x, (3, 4, 1, 1))
    add("stride", x, (3, 4, 3, 3), stride=(2, 1))
    add("stride_leaves_rest", (1, 2, 8, 7), (2, 2, 3, 2), stride=(3, 2))
    add("padding", x, (3, 4, 3, 3), padding=(1, 2))
    add("dilation", x, (2, 4, 2, 2), dilation=(2, 3))
    add("groups", x, (6, 2, 3, 3), bias=True, padding=(1, 1), groups=2)
    add("depthwise", x, (4, 1, 3, 3), padding=(1, 1), groups=4)
    add("everything", (2, 4, 9, 8), (4, 2, 3, 2), bias=True, stride=(2, 3), padding=(2, 1), dilation=(2, 2), groups=2)
    add("whole_input", (2, 3, 4, 4), (5, 3, 4, 4))


def add_pools(cases):
    geometries = {
        "plain": dict(kernel=[2, 2], stride=[0, 0], padding=[0, 0]),
        "overlap": dict(kernel=[3, 3], stride=[2, 2], padding=[1, 1]),
        "oblong": dict(kernel=[3, 2], stride=[1, 2], padding=[1, 0]),
        "whole": dict(kernel=[6, 5], stride=[0, 0], padding=[0, 0]),
    }
    shape = (2, 3, 6, 5)
    for label, geometry in geometries.items():
        area = int(np.prod(geometry["kernel"]))
        cases.add("max_pool2d", label, geometry, lambda s: [s.distinct(*shape)], FLOATS, grad=True, check=EXACT)
        cases.add("avg_pool2d", label, geometry, lambda s: [s.real(*shape)], FLOATS, grad=True, length=area)

        def backward(s):
            y, index = forward("max_pool2d", geometry, [s.distinct(*shape)])
            return [s.real(*y.shape), index]

        cases.add("max_pool2d_backward", label, {"input": list(shape)}, backward, FLOATS, length=area)
        y = forward("avg_pool2d", geometry, [np.zeros(shape, np.float32)])[0].shape
        cases.add(
            "avg_pool2d_backward",
            label,
            {**geometry, "input": list(shape)},
            lambda s: [s.real(*y)],
            FLOATS,
            length=area,
        )
    # The first of equals, the first NaN above all (PyTorch takes the last), and never a place in the padding.
    nans = np.array([[1.0, 1.0, 2.0, np.nan], [1.0, 0.0, np.nan, 2.0]] * 2)
    planes = np.stack([np.ones((4, 4)), np.full((4, 4), -np.inf)])
    for label in ("plain", "overlap"):
        cases.add(
            "max_pool2d",
            f"{label}/nan",
            geometries[label],
            lambda s: [s.of(nans[None, None])],
            FLOATS,
            check=EXACT,
            torch=False,
        )
        cases.add("max_pool2d", f"{label}/ties", geometries[label], lambda s: [s.of(planes[None])], FLOATS, check=EXACT)
