"""Whether every op of ferrite, and every function of its families, has a case."""

# Where a function's name is not simply the attribute "fn".
NAMES = {
    "random": lambda case: {"uniform": "rand", "normal": "randn", "integer": "randint"}.get(case["fn"], case["fn"]),
    "scan": lambda case: "cumsum",
    "cross_entropy_loss": lambda case: "softmax_cross_entropy",
    "triangle": lambda case: "tril" if case["lower"] else "triu",
    "adam": lambda case: "adamw" if case["decoupled"] else "adam",
    "unary_backward": lambda case: "unary_backward",
    "activation_backward": lambda case: "activation_backward",
    "pointwise_loss_backward": lambda case: "pointwise_loss_backward",
}

# User kernels are not a single function: NVIDIA Warp checks them (--oracle warp). Synthetic tables have no meaning in NumPy:
# tests/models/priors checks their laws.
JUDGED_ELSEWHERE = {"launch", "formula_prior", "prior_datasets"}


def function_of(case):
    if case.op in NAMES:
        return NAMES[case.op](case)
    return case.attributes.get("fn", case.op)


def uncovered(cases, ops):
    """What of the program's op list has no case: "softmax", "unary exp", "gradient of matmul", ..."""
    seen = {(case.op, function_of(case)) for case in cases}
    differentiated = {case.op for case in cases if case.grad}
    missing = []
    for op in ops:
        if op["op"] in JUDGED_ELSEWHERE:
            continue
        functions = [name for name in op["functions"] if (op["op"], name) not in seen]
        missing += [op["op"] if name == op["op"] else f"{op['op']} {name}" for name in functions]
        if op["gradient"] and op["op"] not in differentiated:
            missing.append(f"gradient of {op['op']}")
    return missing
