"""What a case is: one call that ferrite and its peers are compared on, and how its inputs are made.

A case is one op with its attributes and inputs. The same cases serve both oracles. Inputs depend on the case's name
alone, so that a case can be run by itself and adding one changes no other.
"""

import zlib
from dataclasses import dataclass, field

import numpy as np

from dtypes import INTEGERS, LARGEST, NUMPY, SMALLEST, is_floating, name_of, round_to, widen

# How a result is compared; compare.py says what each means.
EXACT = "exact"
ELEMENTWISE = "elementwise"
REDUCING = "reducing"


@dataclass
class Case:
    name: str
    op: str
    attributes: dict
    inputs: list
    check: str = REDUCING
    length: float = 1  # terms that go into one element of the result
    ulps: float = 4  # what f32 and f64 elementwise functions may be off by
    grad: bool = False  # differentiable here, away from ties and jumps
    torch: bool = True  # PyTorch has the same definition
    # What only an oracle or the comparison needs: the x behind a saved y; how far one epsilon of x moves y.
    context: dict = field(default_factory=dict)

    @property
    def dtypes(self):
        return [name_of(x) for x in self.inputs]

    @property
    def wide(self):
        return [widen(x) for x in self.inputs]

    @property
    def constants(self):
        """Places of inputs that the op takes as constants: they have no gradient."""
        return self.context.get("constants", ())

    def __getitem__(self, attribute):
        return self.attributes[attribute]


class Source:
    """Makes the inputs of one case in one dtype."""

    def __init__(self, name, dtype):
        self.dtype = dtype
        self.rng = np.random.default_rng(zlib.crc32(name.encode()))
        self.context = {}

    def of(self, values, dtype=None):
        return round_to(np.asarray(values), dtype or self.dtype)

    def real(self, *shape, low=-2.0, high=2.0, dtype=None):
        """Floats in [low, high), integers from -9 to 9 (0 to 9 unsigned), or bools."""
        dtype = dtype or self.dtype
        if is_floating(dtype):
            return self.of(self.rng.uniform(low, high, shape), dtype)
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        return self.of(self.rng.integers(0 if dtype == "u8" else -9, 10, shape), dtype)

    def positive(self, *shape, dtype=None):
        dtype = dtype or self.dtype
        if dtype in INTEGERS:
            return self.of(self.rng.integers(1, 10, shape), dtype)
        return self.real(*shape, low=0.3, high=2.5, dtype=dtype)

    def distinct(self, *shape):
        """No two elements closer than 1/8: max, sort and pools jump at ties."""
        if self.dtype == "bool":
            return self.real(*shape)
        count = int(np.prod(shape))
        values = self.rng.permutation(count).reshape(shape)
        return self.of(values / 8 - count // 16 if is_floating(self.dtype) else values)

    def index(self, *shape, limit, low=0, dtype="i64"):
        return self.rng.integers(low, limit, shape).astype(NUMPY[dtype])

    def boolean(self, *shape):
        return self.real(*shape, dtype="bool")

    def special(self):
        """What breaks elementwise functions: zeros, infinities, NaN, the ends of the range, halves, denormals."""
        largest, smallest = LARGEST[self.dtype], SMALLEST[self.dtype]
        ends = [largest, smallest, 1.5 * np.sqrt(largest), 100 * smallest]
        numbers = [0.0, 0.5, 1.0, 1.5, 2.5, 3.0, 7.25, 20.0, 90.0, 110.0, 1e-3, 1e4, np.inf, *ends]
        return self.of([*numbers, *(-x for x in numbers), np.nan])


class Cases(list):
    def add(self, op, label, attributes, inputs, dtypes=("f32", "f64"), grad=False, **options):
        """One case per dtype. `inputs(source)` makes them; gradients are compared in f32 and f64."""
        for dtype in dtypes:
            if dtype not in NUMPY:
                continue
            name = "/".join(part for part in (op, label, dtype) if part)
            source = Source(name, dtype)
            with np.errstate(all="ignore"):
                made = inputs(source)
            self.append(
                Case(
                    name,
                    op,
                    dict(attributes),
                    made,
                    grad=grad and dtype in ("f32", "f64"),
                    context=source.context,
                    **options
                )
            )
