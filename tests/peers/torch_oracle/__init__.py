"""What each op means in PyTorch: its own functions in float64 on the CPU, gradients by its autograd.

A backward op is checked against the gradient of the forward function, not against a formula.
"""

import numpy as np
import torch

from dtypes import is_floating
from torch_oracle import elementwise, fused, generation, layout, linear_algebra, reduce, spatial, training  # noqa: F401  they register
from torch_oracle.registry import ORACLES
from torch_oracle.tensors import tensor


def evaluate(case, root):
    """The outputs, and the gradient of every floating input for the root gradient (nothing without one)."""
    inputs = [tensor(x, grad=root is not None and is_floating(d)) for x, d in zip(case.wide, case.dtypes)]
    result = ORACLES[case.op](case, *inputs)
    outputs = result if isinstance(result, (tuple, list)) else [result]
    gradients = []
    if root is not None:
        leaves = [x for x in inputs if x.requires_grad]
        found = iter(torch.autograd.grad(outputs[0], leaves, torch.from_numpy(np.asarray(root))))
        gradients = [next(found).numpy() if x.requires_grad else None for x in inputs]
    return [y.detach().numpy() for y in outputs], gradients
