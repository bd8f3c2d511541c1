"""Contracts of headers as Markdown."""

import re
import textwrap


def escape(text):
    """Markdown for plain text; text in backquotes is left unchanged."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else p.replace("*", r"\*").replace("<", "&lt;") for p in parts)


def prose(contract):
    """A contract as Markdown: paragraphs, indented code, `# Shapes` in bold."""
    blocks, paragraph, code = [], [], []

    def flush():
        if paragraph:
            text = escape(" ".join(paragraph))
            blocks.extend(re.sub(r"^# (\w+):", r"**\1:**", p) for p in re.split(r"\s+(?=# \w+:)", text))
        if any(code):
            blocks.append("```c++\n" + textwrap.dedent("\n".join(code)).strip("\n") + "\n```")
        paragraph.clear()
        code.clear()

    for line in contract:
        if (line.startswith("  ") and not paragraph) or (code and not line.strip()):
            code.append(line)
        elif not line.strip():
            flush()
        else:
            if code:
                flush()
            paragraph.append(line.strip())
    flush()
    return "\n\n".join(blocks)


def cell(text):
    return text.replace("|", r"\|").replace("\n", " ")
