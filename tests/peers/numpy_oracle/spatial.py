"""Convolutions and pools; SciPy's correlations one plane at a time."""

import numpy as np
from scipy import signal

from dtypes import promote
from numpy_oracle.registry import oracle


def padded(x, padding, value=0.0):
    return np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding], constant_values=value)


def dilated(plane, steps):
    """Zeros between the elements of a plane."""
    wide = np.zeros([(n - 1) * step + 1 for n, step in zip(plane.shape, steps)])
    wide[:: steps[0], :: steps[1]] = plane
    return wide


def channel_pairs(case, channels, outputs):
    """(output channel, input channel, that channel's place in the weight) of every pair that a group connects."""
    per_group, out_per_group = channels // case["groups"], outputs // case["groups"]
    for o in range(outputs):
        for c in range(per_group):
            yield o, o // out_per_group * per_group + c, c


@oracle("conv2d")
def conv2d(case, x, weight, bias=None):
    wide = padded(x, case["padding"])
    planes = [[0.0] * len(weight) for _ in x]
    for n in range(len(x)):
        for o, c, k in channel_pairs(case, x.shape[1], len(weight)):
            plane = signal.correlate2d(wide[n, c], dilated(weight[o, k], case["dilation"]), "valid")
            planes[n][o] = planes[n][o] + plane[:: case["stride"][0], :: case["stride"][1]]
    y = np.array(planes)
    if bias is not None:
        y = y + bias.reshape(1, -1, 1, 1)
    return [(y, promote(*case.dtypes[:2]))]


@oracle("conv2d_input_grad")
def conv2d_input_grad(case, dy, weight):
    dx = padded(np.zeros(case["input"]), case["padding"])
    for n in range(len(dy)):
        for o, c, k in channel_pairs(case, dx.shape[1], len(weight)):
            part = signal.convolve2d(dilated(dy[n, o], case["stride"]), dilated(weight[o, k], case["dilation"]), "full")
            dx[n, c, : part.shape[0], : part.shape[1]] += part
    (top, left), (height, width) = case["padding"], case["input"][2:]
    return [(dx[:, :, top : top + height, left : left + width], promote(*case.dtypes))]


@oracle("conv2d_weight_grad")
def conv2d_weight_grad(case, dy, x):
    dw, wide = np.zeros(case["weight"]), padded(x, case["padding"])
    kh, kw = case["weight"][2:]
    for n in range(len(x)):
        for o, c, k in channel_pairs(case, x.shape[1], len(dw)):
            part = signal.correlate2d(wide[n, c], dilated(dy[n, o], case["stride"]), "valid")
            dw[o, k] += part[:: case["dilation"][0], :: case["dilation"][1]][:kh, :kw]
    return [(dw, promote(*case.dtypes))]


def pool_windows(case, x, value):
    """[N, C, Ho, Wo, kh, kw]"""
    kernel = case["kernel"]
    steps = [stride or extent for stride, extent in zip(case["stride"], kernel)]
    views = np.lib.stride_tricks.sliding_window_view(padded(x, case["padding"], value), kernel, (2, 3))
    return views[:, :, :: steps[0], :: steps[1]]


@oracle("max_pool2d")
def max_pool2d(case, x):
    """A window's elements in row-major order without the padding; the first maximum, or the first NaN, wins."""
    height, width = x.shape[2:]
    places = np.broadcast_to(np.arange(height * width, dtype=float).reshape(1, 1, height, width), x.shape)
    views, at = pool_windows(case, x, 0.0), pool_windows(case, places, -1.0)
    y, index = np.empty(views.shape[:4]), np.empty(views.shape[:4], dtype=np.int64)
    for window in np.ndindex(*views.shape[:4]):
        inside = at[window] >= 0
        values = views[window][inside]
        best = np.argmax(values)
        y[window], index[window] = values[best], at[window][inside][best]
    return [(y, case.dtypes[0]), (index, "i64")]


@oracle("max_pool2d_backward")
def max_pool2d_backward(case, dy, index):
    n, c, height, width = case["input"]
    dx = np.zeros((n, c, height * width))
    for place in np.ndindex(*dy.shape):
        dx[place[0], place[1], index[place]] += dy[place]
    return [(dx.reshape(case["input"]), case.dtypes[0])]


@oracle("avg_pool2d")
def avg_pool2d(case, x):
    return [(np.mean(pool_windows(case, x, 0.0), axis=(4, 5)), case.dtypes[0])]


@oracle("avg_pool2d_backward")
def avg_pool2d_backward(case, dy):
    kernel, padding = case["kernel"], case["padding"]
    steps = [stride or extent for stride, extent in zip(case["stride"], kernel)]
    dx = padded(np.zeros(case["input"]), padding)
    for h in range(dy.shape[2]):
        for w in range(dy.shape[3]):
            top, left = h * steps[0], w * steps[1]
            dx[:, :, top : top + kernel[0], left : left + kernel[1]] += dy[:, :, h : h + 1, w : w + 1] / np.prod(kernel)
    height, width = case["input"][2:]
    return [(dx[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width], case.dtypes[0])]
