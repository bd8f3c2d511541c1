"""Whether every op of ferrite, and every function of its families, has a case."""

# Where a function's name is not simply the attribute "fn".
NAMES = {
    "random": lambda case: {"uniform": "rand", "normal": "randn", "integer": "randint"}.get(case["fn"], case["fn"]),
    "scan": lambda case: "cumsum",
    "triangle": lambda case: "tril" if case["lower"] else "triu",
    "adam": lambda case: "adamw" if case["decoupled"] else "adam",
    "unary_backward": lambda case: "unary_backward",
    "pointwise_loss_backward": lambda case: "pointwise_loss_backward",
}


def function_of(case):
    if case.op in NAMES:
        return NAMES[case.op](case)
    return case.attributes.get("fn", case.op)


def uncovered(cases, ops):
    """What has no case ("softmax", "unary exp", ...), by the op list of the program."""
    seen = {(case.op, function_of(case)) for case in cases}
    return [f"{op} {function}" for op, functions in ops.items() for function in functions if (op, function) not in seen]
