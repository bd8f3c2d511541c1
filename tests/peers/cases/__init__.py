"""The list of all cases: those of every module here, which is a family of ops or a single op."""

import importlib
import pkgutil

from case import Cases


def all_cases():
    cases = Cases()
    for module in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        importlib.import_module(f"cases.{module}").add_to(cases)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two cases share a name"
    return cases
