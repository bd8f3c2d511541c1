"""Dtypes for storage: casts from and to them, and moving them."""

from case import EXACT
from dtypes import STORAGE


def add_to(cases):
    small = lambda s: [s.of([0, 1, 7, 100, 127])]
    for dtype in STORAGE:
        for source in ("i32", "i64", "u8"):
            cases.add("copy", f"storage_{dtype}_of", {"dtype": dtype}, small, [source], check=EXACT)
        for target in ("i32", "i64", "f32", "f64"):
            cases.add("copy", f"storage_to_{target}", {"dtype": target}, small, [dtype], check=EXACT)
        cases.add("cat", "storage", {"axis": 0}, lambda s: [s.of([3, 1]), s.of([2])], [dtype], check=EXACT)
