"""Writes docs/reference/ from the public headers: python3 docs/generate/reference.py [--check]

--check writes nothing; it fails if a page is out of date or a relative link of any document leads nowhere.
"""

import re
import sys
import textwrap
from dataclasses import dataclass, field, replace
from pathlib import Path

from headers import Declaration, read
from links import broken_links, slug
from pages import INTERNAL, PAGES
from prose import cell, escape, prose

ROOT = Path(__file__).resolve().parents[2]
INCLUDE, OUT = ROOT / "include/ferrite", ROOT / "docs/reference"
WRITTEN = "Written by `./dev docs` from the public headers: change those, not this page."


@dataclass
class Entry:
    header: str
    declarations: list[Declaration] = field(default_factory=list)

    def names(self):
        names = list(dict.fromkeys(d.name for d in self.declarations))
        return [n for n in names if n != "to_string"] or names

    def title(self):
        names = self.names()
        return escape(", ".join(names) if len(names) < 9 else ", ".join(names[:8]) + " and others")


def is_listed(d, header):
    """Whether a user looks it up. What kernels are written with is listed whole."""
    in_kit = header.startswith(("cpu/", "cuda/"))
    hidden = ("op", "lazy", "detail", *(() if in_kit else ("cuda",)))
    if d.space.split("::")[0] in hidden or d.name in ("count_of", "get"):
        return False
    if d.kind == "variable" or d.name == "accepts":
        return (in_kit or bool(d.contract)) and "const Cpu&" not in d.signature and "const Cuda&" not in d.signature
    return d.kind != "concept" or bool(d.contract) or d.name == "Backend"


def entries_of(header, declarations, seen):
    """Declarations that belong together: overloads, and those that share one contract. `seen` holds those before."""
    entries, last = [], None
    for d in [d for d in declarations if is_listed(d, header)]:
        without_names = d.space, re.sub(r"\b\w+(?=[,)]| =)", "", d.signature)
        if d.kind == "function" and without_names in seen:  # the definition of what was declared before
            declared = seen[without_names]
            declared.contract = declared.contract or d.contract
            continue
        seen[without_names] = d
        same = [e for e in entries if d.name in e.names() and d.kind == "function" == e.declarations[0].kind]
        about_enum = d.name == "to_string" and last and last.declarations[0].kind == "enum"
        if about_enum or (d.follows and last and d.kind == last.declarations[-1].kind == "function"):
            pass
        elif same:
            last = same[0]
        else:
            last = Entry(header)
            entries.append(last)
        last.declarations.append(d)
    return entries


def comment(contract):
    return "".join(f"// {line}".rstrip() + "\n" for line in contract)


def signature(d):
    """A declaration as it stands in a code block, with its remark."""
    text = d.signature
    if d.kind == "enum" and "//" in (d.body or ""):
        values = textwrap.indent(textwrap.dedent(d.body.strip("\n")).rstrip(), "  ")
        values = re.sub(r"///<?", "//", values)
        text = text[: text.index("{")] + "{\n" + values + "\n}"
    elif d.kind == "enum" and len(text) > 108:
        text = textwrap.fill(text, 108, subsequent_indent="    ", break_long_words=False)
    return text + ";" + (f"  // {d.remark}" if d.remark else "")


def synopsis(d, members):
    """A type with its public members, contracts as comments."""
    lines = []
    for m in members:
        text = signature(m)
        if m.kind == "type" and m.members:
            text = synopsis(m, shown_members(m))
        lines.append(textwrap.indent(comment(m.contract) + text, "  "))
    body = "\n".join(lines)
    return f"{d.signature} {{\n{body}\n}};" if lines else f"{d.signature};"


def shown_members(d):
    """Without kernels (listed apart) and overrides that have nothing to add to the base's contract."""
    return [m for m in d.members if not re.match(r"void run\(const op::", m.signature)
            and not (re.search(r" override$", m.signature) and not m.contract)
            and not re.match(r"operator |static void (fields|attributes)\(", m.signature)]


def options(d):
    """The members of a config as a table, and the members that are none of its options."""
    rows, rest, setters = [], [], {}
    for m in d.members:
        if m.name.startswith("with_"):
            for name in re.findall(r"&[\w:]*::(\w+),", m.body or "") or [m.name[5:]]:
                setters.setdefault(name, []).append(m.name)
    for m in shown_members(d):
        match = m.kind == "variable" and re.match(r"(.*?)\s*\b(\w+)(?: = (.*)|\{(.*)\})?$", m.signature, re.S)
        if match and "," not in re.sub(r"<.*>|\(.*\)|\{.*\}", "", m.signature):
            meaning = " ".join(filter(None, [*m.contract, m.remark]))
            default = f"`{cell(match[3] or match[4])}`" if match[3] or match[4] else ""
            setter = ", ".join(f"`{name}`" for name in dict.fromkeys(setters.pop(match[2], [])))
            rows.append([f"`{match[2]}`", f"`{cell(match[1])}`", default, setter, cell(escape(meaning))])
        else:
            rest.append(m)
    left = {name for names in setters.values() for name in names}  # those that set no option of that name
    rest = [m for m in rest if m.contract or m.name in left or "," in m.signature or not m.name.startswith("with_")]
    table = [["option", "type", "default", "set by", "meaning"], ["---"] * 5, *rows]
    if not any(row[3] for row in rows):
        table = [row[:3] + row[4:] for row in table]
    return ("\n".join("| " + " | ".join(row) + " |" for row in table) if rows else ""), rest


def type_text(d):
    parts = [prose(d.contract)]
    if re.search(r"(Config|Settings|Options|Weights)$", d.name):
        table, rest = options(d)
        parts.append(table)
        if rest or "template" in d.signature or ":" in d.signature:
            parts.append("```c++\n" + synopsis(d, rest) + "\n```")
    else:
        members = shown_members(d)
        for i, m in enumerate(members):
            if m.name == "forward" and m.contract and m.contract[0].startswith("# Shapes"):
                parts.append(prose(m.contract))
                members[i] = replace(m, contract=[])
        parts.append("```c++\n" + synopsis(d, members) + "\n```")
    kernels = re.findall(r"void run\(const op::(\w+)", "\n".join(m.signature for m in d.members))
    if kernels:
        parts.append("Kernels for " + ", ".join(f"`{k}`" for k in dict.fromkeys(kernels)) + ".")
    return parts


def op_contract(d, ops):
    """What the op behind a function promises and the function does not say."""
    used = re.search(r"\bop::(\w+)\{", d.body or "")
    op = ops.get(used[1]) if used else None
    if not op or "# Shapes" in " ".join(d.contract):
        return []
    if not d.contract:
        return op.contract
    return [s[0] for s in [re.search(r"# Shapes:.*", " ".join(op.contract))] if s]


def render(entry, ops):
    source = f"../../include/ferrite/{entry.header}"
    parts = [f"### {entry.title()}", f"Header: [`ferrite/{entry.header}`]({source})"]
    block, texts = [], []

    def flush():
        if block:
            parts.append("```c++\n" + "\n".join(block) + "\n```")
        parts.extend(texts)
        block.clear()
        texts.clear()

    for d in entry.declarations:
        if d.kind == "type":
            parts += type_text(d)
            continue
        if not d.follows:
            flush()
        block.append(signature(d))
        text = prose([*d.contract, *([""] if d.contract else []), *op_contract(d, ops)])
        if text and text not in texts and text not in parts:
            texts.append(text)
    flush()
    return "\n\n".join(p for p in parts if p)


def op_table(declarations):
    """The op types of a family."""
    rows = []
    for d in declarations:
        type_name = re.search(r'type_name = "(\w+)"', d.body or "")
        if d.space != "op" or not type_name:
            continue
        fields = [m.signature.split(" = ")[0] for m in d.members
                  if m.kind == "variable" and not m.signature.startswith("static") and m.name != "called"]
        listed = ", ".join(f"`{f}`" for f in fields)
        rows.append(f"| `op::{d.name}` | `{type_name[1]}` | {listed} | {cell(prose(d.contract))} |")
    if not rows:
        return ""
    return "\n".join(["| op type | name | attributes | contract |", "|---|---|---|---|", *rows])


def introduction_of(text):
    """The comment at the head of a header, as a quotation."""
    about = re.match(r"((?://[^\n]*\n)+)#pragma once", text)
    return textwrap.indent(prose([line[3:] for line in about[1].splitlines()]), "> ", lambda _: True) if about else ""


def page(title, guides, introduction, sections, sources, ops):
    """The text of a page, and its table of contents: (section, links) with links below the page's own address."""
    body, contents, used, seen = [], [], {}, {}
    slug(title, used)
    for section, headers in sections:
        contents.append((f"[{section}](#{slug(section, used)})", []))
        body.append(f"## {section}")
        declarations = []
        for header in headers:
            text, parsed = sources[header]
            body.append(introduction_of(text))
            # `ferrite ops` says which kernels there are.
            listed = [d for d in parsed if not (header.startswith("ops/") and d.name in ("run", "accepts") and not d.contract)]
            entries = entries_of(header, listed, seen)
            for entry in entries:
                label = escape(", ".join(entry.names())).replace("[]", r"\[\]")
                contents[-1][1].append(f"[{label}](#{slug(entry.title(), used)})")
                body.append((entry, ops))  # rendered last: a definition may bring the contract
            declarations += parsed
        if table := op_table(declarations):
            heading = f"Op types: {section.lower()}"
            slug(heading, used)
            body += [f"### {heading}", table]
    guides = ", ".join(f"[{g}](../{g})" for g in guides.split())
    head = f"# {title}\n\n{introduction}\n\nTo learn it: {guides}. All pages: [reference](README.md). {WRITTEN}"
    listed = "\n".join(f"- {section}: " + ", ".join(links) for section, links in contents)
    blocks = [part if isinstance(part, str) else render(*part) for part in body]
    return "\n\n".join(filter(None, [head, listed, *blocks])) + "\n", contents


def build():
    """All pages: file name -> text."""
    wanted = [h for *_, sections in PAGES for _, headers in sections for h in headers]
    found = {str(p.relative_to(INCLUDE)) for kind in ("*.hpp", "*.cuh") for p in INCLUDE.rglob(kind)}
    # An op needs no entry in pages.py.
    if others := sorted(h for h in found.difference([*wanted, *INTERNAL]) if h.startswith("ops/")):
        next(sections for file, *_, sections in PAGES if file == "ops").append(("Other ops", others))
        wanted += others
    if stray := found.symmetric_difference([*wanted, *INTERNAL]):
        sys.exit(f"{sorted(stray)}: every public header needs a place in docs/generate/pages.py, and no other has one")
    texts = {h: (INCLUDE / h).read_text() for h in wanted}
    sources = {h: (text, read(text)) for h, text in texts.items()}
    ops = {d.name: d for _, parsed in sources.values() for d in parsed if d.space == "op" and d.kind == "type"}
    pages, index = {}, [f"# Reference\n\n{WRITTEN}\n"]
    for file, title, guides, introduction, sections in PAGES:
        pages[f"{file}.md"], contents = page(title, guides, introduction, sections, sources, ops)
        index.append(f"\n## [{title}]({file}.md)\n")
        for section, links in contents:
            index.append(f"{section}: {', '.join(links)}\n".replace("](#", f"]({file}.md#"))
    pages["README.md"] = "\n".join(index)
    return pages


def main():
    pages = build()
    if "--check" not in sys.argv:
        OUT.mkdir(exist_ok=True)
        for old in set(OUT.glob("*.md")) - {OUT / name for name in pages}:
            old.unlink()
        for name, text in pages.items():
            (OUT / name).write_text(text)
        return
    committed = {p.name: p.read_text() for p in OUT.glob("*.md")}
    stale = sorted(n for n in {*pages, *committed} if pages.get(n) != committed.get(n))
    problems = [f"docs/reference/{name}: out of date with the headers; run ./dev docs" for name in stale]
    problems += broken_links(ROOT)
    sys.exit("\n".join(problems) or 0)


if __name__ == "__main__":
    main()
