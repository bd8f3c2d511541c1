"""Writes unicode_ranges.inc: which code points are letters, numbers and white space.

    python3 src/text/unicode_classes.py        (needs the packages tiktoken and tokenizers)

Both packages are asked about every code point, and must agree: the splitting of text into words follows their version of
Unicode (16.0 for tiktoken 0.14 and tokenizers 0.23), whatever the version of this Python.
"""

from pathlib import Path

import tiktoken
from tokenizers import Regex, pre_tokenizers

CLASSES = [("letter", r"\p{L}"), ("number", r"\p{N}"), ("space", r"\s")]
CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def members(pattern):
    """The code points that match, according to both packages."""
    single_bytes = {bytes([b]): b for b in range(256)}
    encoding = tiktoken.Encoding("classes", pat_str=pattern, mergeable_ranks=single_bytes, special_tokens={})
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = [c for c in CODE_POINTS if encoding.encode_ordinary(chr(c))]
    assert found == [c for c in CODE_POINTS if not split.pre_tokenize_str(chr(c))], "the packages disagree"
    return found


def ranges(points):
    """[(first, last)] of runs of successive numbers."""
    runs = []
    for c in points:
        if runs and c == runs[-1][1] + 1:
            runs[-1][1] = c
        else:
            runs.append([c, c])
    return runs


def main():
    rows = sorted((first, last, name) for name, pattern in CLASSES for first, last in ranges(members(pattern)))
    entries = [f"{{0x{first:X}, 0x{last:X}, {name}}}," for first, last, name in rows]
    lines = ["// Written by unicode_classes.py: Unicode 16.0.", "// clang-format off"]
    lines += [" ".join(entries[at:at + 4]) for at in range(0, len(entries), 4)]
    (Path(__file__).parent / "unicode_ranges.inc").write_text("\n".join(lines) + "\n")
    print(f"{len(rows)} ranges")


main()
