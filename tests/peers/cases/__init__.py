"""The list of all cases, by family."""

from case import Cases
from cases import create, elementwise, fused, layout, reduce, spatial, training


def all_cases():
    cases = Cases()
    for family in (create, elementwise, layout, reduce, fused, spatial, training):
        family.add_to(cases)
    names = [case.name for case in cases]
    assert len(set(names)) == len(names), "two cases share a name"
    return cases
