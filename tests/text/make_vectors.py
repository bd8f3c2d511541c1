"""Writes vectors.json: what tiktoken and Hugging Face's tokenizers give, who must agree.

    python3 tests/text/make_vectors.py         (needs the packages tiktoken and tokenizers)

The vocabulary is GPT-2's, vocab.bpe.gz beside this file (MIT licence, OpenAI).
"""

import gzip
import json
import random
from pathlib import Path

import tiktoken
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).parent
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""

STRINGS = [
    "", " ", "  ", "   ", "a", " a", "  a", "   a", "a ", "a  ", "a   b", "Hello world", "Hello, world!  How are you?",
    "I'm, you're, he's, she'll, we've, they'd, don't", "I'M YOU'RE HE'S", "'s 't ''s '''ll 'x' 'l 'v 'r '", "rock'n'roll '90s",
    "\n", "\n\n", "\n\n\n", "a\n\n\nb", "a \n b", "a\r\nb\r\n", "\t", "\t\tif x:\n\t\t\treturn y\n", "x = 1\n\n    y = 2\n        z = 3",
    "trailing spaces   \n", "trailing tab\t", "  \n  \n  x", "1234567890", "3.14159 1,000,000 1e-9 0xFF", "a1b2c3", "100km 5th 2nd",
    "\x00", "a\x00b", "\x00\x01\x02\x03\x1b[31m\x7f", "\x85 \xa0 \u1680 \u2003 \u2028 \u2029 \u202f \u205f \u3000x", "a\u00a0\u00a0b",
    "a\u200bb\u200dc\ufeffd", "\U0001F600\U0001F601", "x \U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466 y", "\U0001F1E9\U0001F1EA \u2764\ufe0f",
    "e\u0301 n\u0303 \u0915\u094d\u0937\u093f", "\u00e9t\u00e9 na\u00efve \u00dcber stra\u00dfe", "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059\u3002",
    "\ud55c\uad6d\uc5b4 \ud14d\uc2a4\ud2b8", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0663\u0664\u0665 \u0967\u0968\u0969 \u00bd \u2163 \u3007 \u00b2\u00b3", "\U0001D7D8\U0001D7D9 \U00010330\U0001F100", "$100 \u20ac5 \u00a37 #1 @x a_b_c __init__",
    "http://www.example.com/?q=a+b&c=%20#top", "for (int i = 0; i < n; ++i) { x[i] *= 2; }  // twice", "<|endoftext|>", "a<|endoftext|>b <|endof",
    "=" * 100, "-" * 37, " " * 63, "a" * 200, "ab" * 150, "SolidGoldMagikarp rawdownload", "\ufffd \ufffe \U0010FFFF", "_" * 130 + "x", "\n" * 50 + "x", "\U000323AF\U000323B0\U00031350",
]


def byte_alphabet():
    """byte -> letter, as GPT-2 writes vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + n) for n, b in enumerate(others)}}


def gpt2():
    """GPT-2's tokenizer in both packages."""
    letters = byte_alphabet()
    byte_of = {letter: byte for byte, letter in letters.items()}
    lines = gzip.decompress((HERE / "vocab.bpe.gz").read_bytes()).decode().split("\n")[1:-1]
    merges = [tuple(line.split(" ")) for line in lines]
    vocab = {text: i for i, text in enumerate([*sorted(byte_of), *(a + b for a, b in merges)])}
    ranks = {bytes(byte_of[letter] for letter in text): i for text, i in vocab.items()}
    encoding = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 50256})
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return encoding, tokenizer


def encode(packages, text):
    ids = packages[0].encode_ordinary(text)
    assert ids == packages[1].encode(text).ids, text
    return ids


def fnv(ids):
    value = 0xCBF29CE484222325
    for i in ids:
        value = (value ^ i) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def code_point_hashes(packages):
    """Of every 4096 code points, each after a letter, after a digit, after a space and before a contraction."""
    hashes = []
    for first in range(0, 0x110000, 4096):
        points = [chr(c) for c in range(first, first + 4096) if not 0xD800 <= c <= 0xDFFF]
        hashes.append(fnv(encode(packages, "".join(f"a{c}1{c} {c}'s" for c in points))))
    return hashes


def training():
    """A corpus, and the merges that Hugging Face's trainer finds in it."""
    draw = random.Random(1)
    syllables = ["ba", "na", "the", "in", "er", "a", "aa", "on", "str", "\u00e9", "\u4f60", "1", "42"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(400)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    text = ""
    for _ in range(2500):
        text += draw.choices(words, weights)[0] + draw.choice([" ", " ", " ", " ", "  ", ", ", ".\n", "\n\n    ", "'s "])
    out = {"corpus": text, "merges": {}}
    for least_count in (1, 2, 20):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.train_from_iterator([text], trainers.BpeTrainer(
            vocab_size=1000, min_frequency=least_count, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        out["merges"][str(least_count)] = [" ".join(m) for m in merges]
    return out


def main():
    packages = gpt2()
    out = {"strings": [{"text": text, "ids": encode(packages, text)} for text in STRINGS],
           "code_points": code_point_hashes(packages), "training": training()}
    (HERE / "vectors.json").write_text(json.dumps(out) + "\n")


main()
