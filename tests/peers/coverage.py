"""Which ops and which functions of the families there are, read from the headers, and whether each has a case."""
import re
from pathlib import Path

OPS = Path(__file__).resolve().parents[2] / "include" / "ferrite" / "ops"


def op_types():
    """C++ name -> type name of every entry of the op list."""
    listed = set(re.findall(r"^\s*X\((\w+)\)", (OPS / "list.hpp").read_text(), re.MULTILINE))
    pattern = re.compile(r"struct FERRITE_API (\w+) \{\s*static constexpr std::string_view type_name = \"(\w+)\"")
    named = dict(match for header in OPS.glob("*.hpp") for match in pattern.findall(header.read_text()))
    return {name: named[name] for name in listed}


def functions(enum):
    """The enumerators of a family."""
    for header in OPS.glob("*.hpp"):
        found = re.search(rf"enum class {enum} : [\w:]+ \{{(.*?)\}};", header.read_text(), re.DOTALL)
        if found:
            body = re.sub(r"//[^\n]*", "", found.group(1))
            return [name.strip() for name in body.split(",") if name.strip()]
    raise LookupError(f"no header defines {enum}")


# The families, with the attribute that chooses the function.
FAMILIES = [
    ("unary", "fn", "UnaryFn"),
    ("binary", "fn", "BinaryFn"),
    ("binary", "side", "ScalarSide"),
    ("where", "side", "ScalarSide"),
    ("reduce", "fn", "ReduceFn"),
    ("argreduce", "fn", "ArgReduceFn"),
    ("statistic", "fn", "StatisticFn"),
    ("random", "fn", "RandomFn"),
    ("linear", "activation", "Activation"),
    ("pointwise_loss", "fn", "LossFn"),
    ("pointwise_loss_backward", "fn", "LossFn"),
]


def uncovered(cases):
    """What has no case: "softmax", "unary exp", ..."""
    covered = {case.op for case in cases}
    missing = [op for op in sorted(op_types().values()) if op not in covered]
    for op, attribute, enum in FAMILIES:
        seen = {case[attribute] for case in cases if case.op == op}
        missing += [f"{op} {name}" for name in functions(enum) if name not in seen]
    return missing
