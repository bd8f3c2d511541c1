"""The optimiser steps, taken by torch.optim."""

import torch

from torch_oracle.registry import oracle


def one_step(parameters, gradients, clip, make):
    """Parameters after one step of a torch optimiser that `make` builds."""
    leaves = [p.detach().clone().requires_grad_() for p in parameters]
    for leaf, gradient in zip(leaves, gradients):
        leaf.grad = gradient * clip
    optimizer = make(leaves)
    optimizer.step()
    return leaves, optimizer


def lists(tensors, count):
    n = (len(tensors) - 1) // count
    return [tensors[i * n : (i + 1) * n] for i in range(count)] + [tensors[-1]]


@oracle("sgd")
def sgd(case, *tensors):
    parameters, gradients, buffers, clip = lists(tensors, 3)
    if clip < 0:  # the step changes nothing
        return list(parameters + buffers)

    def make(leaves):
        keys = ("lr", "momentum", "nesterov", "weight_decay")
        optimizer = torch.optim.SGD(leaves, **{key: case[key] for key in keys})
        for leaf, buffer in zip(leaves, buffers):
            optimizer.state[leaf]["momentum_buffer"] = buffer.clone()
        return optimizer

    leaves, optimizer = one_step(parameters, gradients, clip, make)
    return leaves + [optimizer.state[leaf]["momentum_buffer"] for leaf in leaves]


@oracle("adam")
def adam(case, *tensors):
    parameters, gradients, firsts, seconds, clip = lists(tensors, 4)
    if clip < 0:
        return list(parameters + firsts + seconds)

    def make(leaves):
        kind = torch.optim.AdamW if case["decoupled"] else torch.optim.Adam
        betas = (case["beta1"], case["beta2"])
        optimizer = kind(leaves, lr=case["lr"], betas=betas, eps=case["eps"], weight_decay=case["weight_decay"])
        for leaf, m, v in zip(leaves, firsts, seconds):
            step = torch.tensor(float(case["step"] - 1))
            optimizer.state[leaf].update(step=step, exp_avg=m.clone(), exp_avg_sq=v.clone())
        return optimizer

    leaves, optimizer = one_step(parameters, gradients, clip, make)
    return leaves + [optimizer.state[leaf][key] for key in ("exp_avg", "exp_avg_sq") for leaf in leaves]
