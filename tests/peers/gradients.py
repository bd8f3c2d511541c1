"""Gradients of the NumPy oracles by differences, so that every backward is checked where PyTorch is not installed."""
import numpy as np

from dtypes import is_floating
from numpy_oracle import ORACLES

# Fourth order: an error of about STEP^4 from the formula and epsilon / STEP from rounding, both below TOLERANCE.
STEP = 1e-3
TOLERANCE = 1e-7
WEIGHTS = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))


def numeric_gradients(case, root):
    """d sum(root * out0) / d input, for every floating input of an f64 case; None for the others."""
    inputs = case.wide
    with np.errstate(all="ignore"):
        return [derivative(case, inputs, i, root) if is_floating(case.dtypes[i]) else None for i in range(len(inputs))]


def derivative(case, inputs, position, root):
    x = inputs[position]
    result = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        for steps, weight in WEIGHTS:
            moved = x.copy()
            moved[place] += steps * STEP
            values, _ = ORACLES[case.op](case, *inputs[:position], moved, *inputs[position + 1 :])[0]
            result[place] += weight / STEP * np.sum(root * values)
    return result


def gradient_mismatch(got, expected):
    if got.shape != expected.shape:
        return f"shape is {list(got.shape)}, expected {list(expected.shape)}"
    allowed = TOLERANCE * (np.abs(expected) + np.sqrt(np.mean(expected**2)) + 1e-3) if expected.size else 0
    wrong = np.argwhere(~(np.abs(got - expected) <= allowed))
    if len(wrong) == 0:
        return None
    place = tuple(wrong[0])
    return f"{len(wrong)} of {got.size} elements differ; first at {list(map(int, place))}: {got[place]}, by differences {expected[place]}"
