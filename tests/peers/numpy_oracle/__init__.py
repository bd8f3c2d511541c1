"""What each op means, said in NumPy and SciPy in float64.

An oracle takes the case and its inputs as wide values (float64, int64, bool) and returns (values, dtype) per output.
"""

import numpy as np

from numpy_oracle import create, elementwise, fused, generation, layout, linear_algebra, reduce, spatial, training  # noqa: F401  they register
from numpy_oracle.registry import ORACLES


def evaluate(case):
    with np.errstate(all="ignore"):
        return ORACLES[case.op](case, *case.wide)
