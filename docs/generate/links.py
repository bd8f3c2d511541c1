"""Relative links of the documents: does the file exist, and the heading in it?"""

import re


def slug(heading, used):
    """GitHub's anchor of a heading; `used` counts those that were there before."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("&lt;", "<").replace("`", "")
    text = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
    count = used.get(text, 0)
    used[text] = count + 1
    return f"{text}-{count}" if count else text


def anchors(text):
    used = {}
    plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return {slug(h, used) for h in re.findall(r"^#+ (.*)$", plain, flags=re.M)}


def broken_links(root):
    """One line for each broken link."""
    documents = [*root.glob("*.md"), *root.glob("docs/**/*.md")]
    known = {path.resolve(): anchors(path.read_text()) for path in documents}
    problems = []
    for path in sorted(documents):
        text = re.sub(r"^```.*?^```|`[^`\n]*`(?!\])", "", path.read_text(), flags=re.S | re.M)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"\w+:", target):
                continue
            file, _, place = target.partition("#")
            there = (path.parent / file).resolve() if file else path.resolve()
            if not there.exists():
                problems.append(f"{path.relative_to(root)}: link to {target}: no such file")
            elif place and there in known and place not in known[there]:
                problems.append(f"{path.relative_to(root)}: link to {target}: no such heading")
    return problems
