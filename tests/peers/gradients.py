"""Gradients of the NumPy oracles by differences, so that every backward is checked where PyTorch is not installed."""

import numpy as np

from numpy_oracle.registry import ORACLES

# Fourth order: an error of about STEP^4 from the formula and epsilon / STEP from rounding, both below TOLERANCE.
STEP = 1e-3
TOLERANCE = 1e-7
WEIGHTS = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))


def numeric_gradients(case, root):
    """d sum(root * out0) / d input, for every f64 input; None for the others, whose gradients are rounded too much."""
    inputs = case.wide
    with np.errstate(all="ignore"):
        return [derivative(case, inputs, i, root) if case.dtypes[i] == "f64" else None for i in range(len(inputs))]


def derivative(case, inputs, position, root):
    """NaN where the function has a kink or a jump within reach of the step: two step sizes then disagree."""
    coarse, fine = (difference(case, inputs, position, root, step) for step in (STEP, STEP / 2))
    size = np.abs(fine) + root_mean_square(fine)
    return np.where(np.abs(coarse - fine) <= 100 * TOLERANCE * size + 1e-9, fine, np.nan)


def difference(case, inputs, position, root, step):
    x = inputs[position]
    result = np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        for steps, weight in WEIGHTS:
            moved = x.copy()
            moved[place] += steps * step
            values, _ = ORACLES[case.op](case, *inputs[:position], moved, *inputs[position + 1 :])[0]
            constant = np.where(np.isfinite(values), values, 0.0)  # an infinity (padding, a mask) does not move
            result[place] += weight / step * np.sum(root * constant)
    return result


def root_mean_square(values):
    return np.sqrt(np.mean(values**2)) if values.size else 0.0


def gradient_mismatch(got, expected):
    """Nothing if `got` is right; elements without a derivative count as right, but not if they are many."""
    if got.shape != expected.shape:
        return f"shape is {list(got.shape)}, expected {list(expected.shape)}"
    smooth = ~np.isnan(expected)
    if 2 * np.count_nonzero(smooth) < smooth.size:
        return "most elements have no derivative: choose other inputs"
    wanted = np.where(smooth, expected, 0.0)
    allowed = TOLERANCE * (np.abs(wanted) + root_mean_square(wanted)) + 1e-10
    wrong = np.argwhere(smooth & ~(np.abs(got - wanted) <= allowed))
    if len(wrong) == 0:
        return None
    place = tuple(wrong[0])
    first = f"first at {list(map(int, place))}: {got[place]}, by differences {expected[place]}"
    return f"{len(wrong)} of {got.size} elements differ; {first}"
