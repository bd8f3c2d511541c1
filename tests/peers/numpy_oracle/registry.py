"""Where the oracles of all families are collected: type name of an op -> function."""

ORACLES = {}


def oracle(op):
    def register(function):
        ORACLES[op] = function
        return function

    return register
