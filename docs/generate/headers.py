"""Reads C++ headers of this project's style: declarations with the contracts (`///`) above them.

This is no C++ parser: it relies on clang-format's layout (a body's brace has a space before it, an
initialiser's has none) and on the project's rule that a contract stands directly above what it is about.
"""

import re
from dataclasses import dataclass, field


@dataclass
class Declaration:
    kind: str  # function, type, enum, concept, alias, variable
    name: str
    signature: str  # without a body
    contract: list[str]
    body: str | None = None
    remark: str = ""  # the comment behind it on its line
    space: str = ""  # its namespace below ferrite: "nn", "op", ...
    members: list["Declaration"] = field(default_factory=list)
    follows: bool = False  # directly below another one-line declaration, with no contract of its own


def skip_quiet(text, at):
    """The place behind the string, character or comment at `at`, or `at` if there is none."""
    if text.startswith("//", at):
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if text.startswith('R"(', at):
        return text.index(')"', at) + 2
    if text[at] == '"' or (text[at] == "'" and not text[at - 1].isalnum()):
        end = at + 1
        while text[end] != text[at]:
            end += 2 if text[end] == "\\" else 1
        return end + 1
    return at


def closing(text, at):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    while at < len(text):
        after = skip_quiet(text, at)
        if after > at:
            at = after
            continue
        depth += (text[at] in "({[") - (text[at] in ")}]")
        at += 1
        if depth == 0:
            return at
    raise ValueError("a bracket that is never closed")


def without_template(head):
    """The head behind `template <...>`, as often as it stands there, and behind `requires ...` lines."""
    head = head.strip()
    while match := re.match(r"template\s*<", head):
        depth, at = 0, match.end() - 1
        while True:
            depth += {"<": 1, ">": -1}.get(head[at], 0)
            at += 1
            if depth == 0:
                break
        head = head[at:].strip()
        head = re.sub(r"^requires( [^\n]*\n|\([^()]*\) )", "", head).strip()
    return head


def is_initializer(head):
    """Whether a brace behind `head` opens a value, not a body."""
    plain = without_template(head) + " "
    if re.search(r"\brequires\s*(\(([^(){}]|\([^()]*\))*\))?\s*$", head) or re.match(r"(inline )?(constexpr )?concept\b", plain):
        return True
    if head and head[-1] not in " \n":
        return True
    if re.match(r"(class|struct|union|enum|namespace)\b", plain):
        return False
    depth = 0
    for i, c in enumerate(plain):
        depth += (c in "(<[") - (c in ")]" or (c == ">" and plain[i - 1] != "-"))
        if depth <= 0 and plain.startswith(" = ", i) and "operator" not in plain[:i]:
            return True
    return False


def read_declaration(text, at):
    """Head and body of the declaration at `at`, and the place behind it."""
    start = at
    while True:
        after = skip_quiet(text, at)
        if after > at:
            at = after
        elif text[at] == ";":
            return text[start:at], None, at + 1
        elif text[at] == "{" and not is_initializer(text[start:at]):
            end = closing(text, at)
            head, body = text[start:at], text[at + 1 : end - 1]
            tail = re.match(r"[^;\n]*;", text[end:])
            if re.match(r"(class|struct|union|enum)\b", without_template(head)) and tail:
                end += tail.end()
            return head, body, end
        elif text[at] in "({[":
            at = closing(text, at)
        else:
            at += 1


def tidy(head):
    """A signature as a reader wants it: no initialiser list, no export macro, one line where it fits."""
    head = re.sub(r"\b(FERRITE_API|FERRITE_INLINE|FERRITE_HOST_DEVICE|inline) ", "", head)
    lines = [line.strip() for line in re.sub(r"\s*//[^\n]*", "", head).strip().splitlines()]
    if initializers := re.search(r"\)\s*: [\w:]+[<({]", "\n".join(lines)):
        lines = "\n".join(lines)[: initializers.start() + 1].splitlines()
    joined = re.sub(r"([(<]) ", r"\1", " ".join(lines))
    if len(joined) <= 108:
        return joined
    first = next((i for i, line in enumerate(lines) if not re.match(r"template|requires", line)), 0)
    return "\n".join(lines[: first + 1] + ["    " + line for line in lines[first + 1 :]])


def declare(head, body, contract, space):
    """What a head declares, or None for what no user looks up."""
    plain = without_template(head)
    signature = tidy(head)
    if re.match(r"(friend|static_assert|extern|using namespace|return|~|virtual ~)\b|~|virtual ~", plain):
        return None
    if re.search(r"= delete$", plain) or head.strip().startswith("template <>"):
        return None
    plain = re.sub(r"(\bFERRITE_\w+|\[\[\w+\]\]|\bdecltype\(auto\)) ", "", plain)
    if match := re.match(r"enum (?:class |struct )?(\w+)", plain):
        values = " ".join(re.sub(r"//[^\n]*", "", body).split())
        return Declaration("enum", match[1], f"{signature} {{ {values.strip()} }}", contract, body, space=space)
    if match := re.match(r"(?:class|struct|union) ([\w:]+)", plain):
        if body is None or plain[match.end() :].startswith("<"):
            return None  # defined elsewhere, or a specialisation
        members = read(body, space, public=not plain.startswith("class"))
        return Declaration("type", match[1], signature, contract, body, space=space, members=members)
    if match := re.match(r"concept (\w+)", plain):
        return Declaration("concept", match[1], signature, contract, space=space)
    if match := re.match(r"using (\w+)\s*=", plain):
        return Declaration("alias", match[1], signature, contract, space=space)
    if plain.startswith("using"):
        return None
    if match := re.search(r"(operator\s*(?:\(\)|\[\]|[^\s(\w]+|[\w:<> ]+)|[\w:<>]*?\w+)\s*\(", plain):
        first = plain.find("(")
        if " = " not in plain[:first] or "operator" in plain[:first]:
            name = match[1].strip().replace("operator ", "operator")
            outside = "::" in name or re.search(r"::" + re.escape(match[1]) + r"\s*\(", plain)
            return None if outside else Declaration("function", name, signature, contract, body, space=space)
    name = re.split(r"\s*(?:=|\{|\[)", plain)[0].split()[-1]
    return Declaration("variable", name, signature, contract, space=space)


def read(text, space="", public=True):
    """The public declarations of a header, a namespace or a class, in their order."""
    found, contract, macros, at, near = [], [], {}, 0, False
    while at < len(text):
        line = text[at : (text.find("\n", at) + 1 or len(text) + 1) - 1]
        if text[at].isspace():
            near = near and not re.match(r"\s*?\n[ \t]*\n", text[at:])
            at += len(re.match(r"\s+", text[at:])[0])
            continue
        if match := re.match(r"///? ?(.*)", line):
            comment = line.startswith("///")
            rest = text[at + len(line) :]
            if comment or re.match(r"\s*(//[^\n]*\n\s*)*#define \w+\(", rest):
                contract.append(match[1])
            else:
                contract = []
            near, at = False, at + len(line)
            continue
        if line.startswith("#"):
            while line.endswith("\\"):
                line = text[at : text.find("\n", at + len(line) + 1)]
            if match := re.match(r"#define (\w+)\(([^)]*)\)(.*)", line, re.S):
                macros[match[1]] = (re.split(r",\s*", match[2]), match[3].replace("\\\n", "\n"), contract)
            contract, at = [], at + len(line)
            continue
        if match := re.match(r"(public|private|protected):", line):
            public, contract, at = match[1] == "public", [], at + match.end()
            continue
        if match := re.match(r"(FERRITE_\w+)\((.*?)\)[^\S\n]*(?://\s*(.*))?$", line):
            if match[1] in macros:
                names, meaning, shared = macros[match[1]]
                for name, value in zip(names, re.split(r",\s*", match[2])):
                    meaning = re.sub(rf"(?<!\w){name}(?!\w)(##)?", value, meaning)
                expanded = read(meaning, space)
                for d in expanded:
                    d.contract, d.remark = shared, match[3] or ""
                    d.follows = bool(found) and found[-1].contract is shared
                    found.append(d)
            at += len(line)
            continue
        head, body, end = read_declaration(text, at)
        one_line = "\n" not in text[at:end]
        at = end
        remark = ""
        if match := re.match(r"[^\S\n]*///?<?\s*([^\n]*)", text[at:]):
            remark, at = re.sub(r"NOLINT.*", "", match[1]), at + match.end()
        if match := re.match(r"(?:inline )?namespace ([\w:]*)", head):
            inner = "::".join(p for p in [space, match[1]] if p)
            inner = re.sub(r"^ferrite(::)?", "", inner)
            if public and not {"detail", "std", ""} & set(re.split("::", match[1] or "")):
                found += read(body, inner)
            contract, near = [], False
            continue
        if public and (d := declare(head, body, contract, space)):
            d.remark = remark
            d.follows = near and not contract and bool(found)
            found.append(d)
            near = one_line
        else:
            near = False
        contract = []
    return found
