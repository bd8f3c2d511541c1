"""Convolutions and pools."""

import torch
import torch.nn.functional as F

from torch_oracle.registry import oracle
from torch_oracle.tensors import gradient_of


def geometry(case):
    return {key: case[key] for key in ("stride", "padding", "dilation", "groups")}


@oracle("conv2d")
def conv2d(case, x, weight, bias=None):
    return F.conv2d(x, weight, bias, **geometry(case))


@oracle("conv2d_input_grad")
def conv2d_input_grad(case, dy, weight):
    x = torch.zeros(case["input"], dtype=torch.float64)
    return gradient_of(lambda x: F.conv2d(x, weight, **geometry(case)), [x], dy)[0]


@oracle("conv2d_weight_grad")
def conv2d_weight_grad(case, dy, x):
    weight = torch.zeros(case["weight"], dtype=torch.float64)
    return gradient_of(lambda w: F.conv2d(x, w, **geometry(case)), [weight], dy)[0]


def pool_geometry(case):
    stride = [stride or kernel for stride, kernel in zip(case["stride"], case["kernel"])]
    return {"kernel_size": case["kernel"], "stride": stride, "padding": case["padding"]}


@oracle("max_pool2d")
def max_pool2d(case, x):
    return F.max_pool2d(x, **pool_geometry(case), return_indices=True)


@oracle("max_pool2d_backward")
def max_pool2d_backward(case, dy, index):
    n, c, height, width = case["input"]
    plane = torch.zeros(n, c, height * width, dtype=torch.float64)
    return plane.scatter_add(2, index.flatten(2), dy.flatten(2)).reshape(case["input"])


@oracle("avg_pool2d")
def avg_pool2d(case, x):
    return F.avg_pool2d(x, **pool_geometry(case))


@oracle("avg_pool2d_backward")
def avg_pool2d_backward(case, dy):
    x = torch.zeros(case["input"], dtype=torch.float64)
    return gradient_of(lambda x: F.avg_pool2d(x, **pool_geometry(case)), [x], dy)[0]
