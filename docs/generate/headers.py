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
    """The place after the string, character or comment at `at`, or `at` if there is none."""
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
    """The place after the bracket that closes the one at `at`."""
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
    """The head after any `template <...>` and `requires ...` lines."""
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
    """Whether a brace after `head` opens a value, not a body."""
    plain = without_template(head) + " "
    if plain.startswith("concept ") or re.search(r"\brequires\s*(\(([^(){}]|\([^()]*\))*\))?\s*$", head):
        return True
    if head[-1] not in " \n":
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
    """Head and body of the declaration at `at`, and the place after it."""
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
    head = re.sub(r"\b(FERRITE_API|FERRITE_INLINE|FERRITE_HOST_DEVICE|FERRITE_FORMULA|inline) ", "", head)
    lines = [line.strip() for line in re.sub(r"\s*//[^\n]*", "", head).strip().splitlines()]
    if initializers := re.search(r"\)\s*: [\w:]+[<({]", "\n".join(lines)):
        lines = "\n".join(lines)[: initializers.start() + 1].splitlines()
    joined = re.sub(r"([(<]) ", r"\1", " ".join(lines))
    if len(joined) <= 108:
        return joined
    first = next((i for i, line in enumerate(lines) if not re.match(r"template|requires", line)), 0)
    return "\n".join(lines[: first + 1] + ["    " + line for line in lines[first + 1 :]])


def declare(head, body, contract, space):
    """What a head declares, or None if no user would look it up."""
    plain = without_template(head)
    if re.match(r"friend\b|static_assert\b|extern\b|using [^=]*$|(virtual )?~", plain):
        return None
    if plain.endswith("= delete") or head.strip().startswith("template <>"):
        return None
    plain = re.sub(r"(\bFERRITE_\w+|\[\[\w+\]\]|\bdecltype\(auto\)) ", "", plain)

    def declaration(kind, name, **more):
        common = {"signature": tidy(head), "contract": contract, "body": body, "space": space}
        return Declaration(kind, name, **{**common, **more})

    if match := re.match(r"enum (?:class |struct )?(\w+)", plain):
        values = " ".join(re.sub(r"//[^\n]*", "", body).split())
        return declaration("enum", match[1], signature=f"{tidy(head)} {{ {values} }}")
    if match := re.match(r"(?:class|struct|union) (?:alignas\(.*?\) )?([\w:]+)", plain):
        if body is None or plain[match.end() :].startswith("<"):
            return None  # defined elsewhere, or a specialisation
        return declaration("type", match[1], members=Reader(body, space, not plain.startswith("class")).read())
    if match := re.match(r"concept (\w+)", plain):
        return declaration("concept", match[1])
    if match := re.match(r"using (\w+)\s*=", plain):
        return declaration("alias", match[1])
    while "operator" not in plain and "<" in plain:  # std::function<void(int)> is no function
        plain, there = re.subn(r"<[^<>]*>", "", plain)
        if not there:
            break
    before = plain.partition("(")[0]
    if "(" in plain and (" = " not in before or "operator" in before):
        name = re.search(r"(operator\s*(?:\(\)|\[\]|[^\s(\w]+|[\w:<> ]+)|\w+)\s*\(", plain)
        if plain[: name.start()].endswith("::"):
            return None  # declared in its class
        return declaration("function", name[1].strip().replace("operator ", "operator"))
    return declaration("variable", re.split(r"\s*(?:=|\{|\[)", plain)[0].split()[-1])


class Reader:
    """Reads a header, a namespace or the body of a class, and keeps the public declarations."""

    def __init__(self, text, space="", public=True):
        self.text, self.space, self.public = text, space, public
        self.at = 0
        self.found = []
        self.contract = []  # the comment above what comes next
        self.near = False  # directly below a declaration of one line
        self.macros = {}  # name -> parameters, meaning, contract

    def read(self):
        """The declarations in their order."""
        steps = [self.skip_space, self.read_comment, self.read_directive, self.read_access, self.expand_macro]
        while self.at < len(self.text):
            line = self.text[self.at :].partition("\n")[0]
            if not any(step(line) for step in steps):
                self.read_declaration()
        return self.found

    def skip_space(self, line):
        space = re.match(r"\s*", self.text[self.at :])[0]
        self.near = self.near and space.count("\n") < 2
        self.at += len(space)
        return space

    def read_comment(self, line):
        """A contract, or, above a macro, what is said about its uses; any other comment ends what was above it."""
        if not (match := re.match(r"(///?) ?(.*)", line)):
            return False
        self.at += len(line)
        above_macro = re.match(r"\s*(//[^\n]*\n\s*)*#define \w+\(", self.text[self.at :])
        self.contract = [*self.contract, match[2]] if match[1] == "///" or above_macro else []
        self.near = False
        return True

    def read_directive(self, line):
        if not line.startswith("#"):
            return False
        text = re.match(r"(.*\\\n)*.*", self.text[self.at :])[0]
        if match := re.match(r"#define (\w+)\(([^)]*)\)(.*)", text, re.S):
            self.macros[match[1]] = (re.split(r",\s*", match[2]), match[3].replace("\\\n", "\n"), self.contract)
        self.at += len(text)
        self.contract = []
        return True

    def read_access(self, line):
        if not (match := re.match(r"(public|private|protected):", line)):
            return False
        self.public = match[1] == "public"
        self.at += match.end()
        self.contract = []
        return True

    def expand_macro(self, line):
        """FERRITE_UNARY(exp) declares what the macro above it says."""
        match = re.match(r"(FERRITE_\w+)\((.*?)\)\s*(?://\s*(.*))?$", line)
        if not match:
            return False
        self.at += len(line)
        if match[1] in self.macros:
            names, meaning, contract = self.macros[match[1]]
            for name, value in zip(names, re.split(r",\s*", match[2])):
                meaning = re.sub(rf"(?<!\w){name}(?!\w)(##)?", value, meaning)
            for d in Reader(meaning, self.space).read():
                d.contract, d.remark = contract, match[3] or ""
                d.follows = bool(self.found) and self.found[-1].contract is contract
                self.found.append(d)
        return True

    def read_declaration(self):
        start, contract, self.contract = self.at, self.contract, []
        head, body, self.at = read_declaration(self.text, start)
        one_line = "\n" not in self.text[start : self.at]
        remark = re.match(r"[^\S\n]*///?<?\s*([^\n]*)|", self.text[self.at :])
        self.at += remark.end()
        follows, self.near = self.near and not contract, False
        if match := re.match(r"namespace ([\w:]*)", head):
            if not {"detail", "std", ""} & set(match[1].split("::")):
                inner = re.sub(r"^ferrite(::)?", "", f"{self.space}::{match[1]}".strip(":"))
                self.found += Reader(body, inner).read()
        elif self.public and (d := declare(head, body, contract, self.space)):
            d.remark = re.sub(r"NOLINT.*", "", remark[1] or "")
            d.follows = follows
            self.found.append(d)
            self.near = one_line


def read(text):
    """The public declarations of a header, in their order."""
    return Reader(text).read()
