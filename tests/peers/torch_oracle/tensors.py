"""Leaves and their gradients."""

import numpy as np
import torch


def tensor(values, grad=False):
    return torch.tensor(np.ascontiguousarray(values).reshape(values.shape), requires_grad=grad)


def gradient_of(function, inputs, root):
    """The gradients of a function's result; the inputs are made leaves."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*leaves), leaves, root)
