"""Gradients of the NumPy oracles by differences, so that every backward is checked where PyTorch is not installed."""

import numpy as np

from numpy_oracle.registry import ORACLES

# Fourth order: an error of about STEP^4 from the formula and epsilon / STEP from rounding, both below TOLERANCE.
STEP = 1e-3
TOLERANCE = 1e-7
WEIGHTS = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))


# Ways in which all elements of an input move at once. No element stays, so that each has its share in the change.
WAYS = 3


def mismatches(case, root, results):
    """(name, what is wrong) of the gradients of f64 inputs; those of other dtypes are rounded too much. Where a gradient
    foretells how the result changes as all elements move, it is right. Else it is compared element by element, which says
    where it is wrong and passes over kinks."""
    with np.errstate(all="ignore"):
        for i, x in enumerate(case.wide):
            if case.dtypes[i] != "f64" or i in case.constants:
                continue
            got = results[f"grad_in{i}"]
            if got.shape == x.shape and foretells(case, i, root, got):
                continue
            yield f"grad_in{i}", gradient_mismatch(got, derivative(case, case.wide, i, root))


def foretells(case, position, root, got):
    """About as strict as the comparison by elements: a wrong one alone changes every way by half its error or more."""
    if not np.all(np.isfinite(got)):
        return False  # any change would be within the tolerance of an infinite gradient
    rng = np.random.default_rng(len(case.name))
    for _ in range(WAYS):
        way = rng.uniform(0.5, 1, got.shape) * rng.choice([-1.0, 1.0], got.shape)
        seen = change(case, case.wide, position, root, STEP * way) / STEP
        if not abs(seen - np.sum(got * way)) <= TOLERANCE * root_mean_square(got) + 1e-10:
            return False
    return True


def derivative(case, inputs, position, root):
    """NaN where the function has a kink or a jump within reach of the step: two step sizes then disagree."""
    coarse, fine = (difference(case, inputs, position, root, step) for step in (STEP, STEP / 2))
    size = np.abs(fine) + root_mean_square(fine)
    return np.where(np.abs(coarse - fine) <= 100 * TOLERANCE * size + 1e-9, fine, np.nan)


def difference(case, inputs, position, root, step):
    result = np.zeros(inputs[position].shape)
    for place in np.ndindex(*result.shape):
        move = np.zeros(result.shape)
        move[place] = step
        result[place] = change(case, inputs, position, root, move) / step
    return result


def change(case, inputs, position, root, move):
    """Of sum(root * out0), to fourth order, as the input moves."""
    total = 0.0
    for steps, weight in WEIGHTS:
        moved = inputs[position] + steps * move
        values, _ = ORACLES[case.op](case, *inputs[:position], moved, *inputs[position + 1 :])[0]
        total += weight * np.sum(root * np.where(np.isfinite(values), values, 0.0))  # an infinity (padding, a mask) stays
    return total


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
