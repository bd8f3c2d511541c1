"""The optimiser steps."""

import numpy as np

from numpy_oracle.registry import oracle


def lists(tensors, count):
    """`count` lists of equal length, and the clip factor."""
    n = (len(tensors) - 1) // count
    return [tensors[i * n : (i + 1) * n] for i in range(count)] + [tensors[-1]]


@oracle("sgd")
def sgd(case, *tensors):
    parameters, gradients, buffers, clip = lists(tensors, 3)
    momentum, n = case["momentum"], len(parameters)
    if clip < 0:  # the step changes nothing
        return list(zip(parameters + buffers, case.dtypes[:n] + case.dtypes[2 * n :]))
    updated, moved = [], []
    for p, g, v in zip(parameters, gradients, buffers):
        g = g * clip + case["weight_decay"] * p
        v = momentum * v + g if momentum else v
        step = g if not momentum else g + momentum * v if case["nesterov"] else v
        updated.append(p - case["lr"] * step)
        moved.append(v)
    return list(zip(updated, case.dtypes[:n])) + list(zip(moved, case.dtypes[2 * n :]))


@oracle("adam")
def adam(case, *tensors):
    parameters, gradients, firsts, seconds, clip = lists(tensors, 4)
    beta1, beta2, decay, n = case["beta1"], case["beta2"], case["weight_decay"], len(parameters)
    if clip < 0:
        return list(zip(parameters + firsts + seconds, case.dtypes[:n] + case.dtypes[2 * n : 4 * n]))
    results = [[], [], []]
    for p, g, m, v in zip(parameters, gradients, firsts, seconds):
        g = g * clip + (0 if case["decoupled"] else decay * p)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        m_hat, v_hat = m / (1 - beta1 ** case["step"]), v / (1 - beta2 ** case["step"])
        kept = p - case["lr"] * decay * p if case["decoupled"] else p
        for result, value in zip(results, (kept - case["lr"] * m_hat / (np.sqrt(v_hat) + case["eps"]), m, v)):
            result.append(value)
    return list(zip(sum(results, []), case.dtypes[:n] + case.dtypes[2 * n : 4 * n]))
