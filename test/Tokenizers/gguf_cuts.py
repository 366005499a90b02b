# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Texts are cut as llama.cpp cuts them, for every name that files give to it.

    python3 gguf_cuts.py FOLDER COMMAND...

COMMAND is `attune tokenize`. The vocabulary is made of merges over whole texts,
so that a cut elsewhere gives other ids. Inputs/expected-llama-cpp.json has, for
names that cut alike, a hash of the ids of each text as llama.cpp 0.5.0 gave
them. Its patterns for some names are approximations, as its source says; texts
that it cuts otherwise than the tokenizers of these models have null there.
"""
import collections
import hashlib
import json
import os
import subprocess
import sys

import kinds

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "lib"))
import gguf

EXPECTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs",
                        "expected-llama-cpp.json")
TEXTS = [
    "It's 2024-12-31, don't we'LL THEY'VE I'd he'S",
    "1234567890 12 345,678.90 ٣٤٥٦٧ Ⅷ ½ ²³", "१२३४ १२",
    "你好，世界！今天是2024年12月31日。", "こんにちは、世界。カタカナ　ｶﾅ",
    "안녕하세요 세계 123", "नमस्ते दुनिया किताबें", "สวัสดีชาวโลก ๑๒๓ ภาษาไทย",
    "مرحبا بالعالم ٤٥٦", "emoji 😀👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ end",
    "e\u0301a\u0308 combining n\u0303\u0303 x", "  leading spaces",
    "trailing   ", "tabs\t\tand\n\nnewlines\r\n\r\n  x\n \n", "a\n b\n\n\nc",
    "<s>special</s> <|im_end|>x<|im_start|>user", "camelCase DEFghi McDONALD",
    "foo_bar.baz(qux[0]) != {'a': 1} // comment /* x */ ->",
    "naïve café Straße ŒUVRE", "Привет, мир! Ещё не вечер.",
    "Ελληνικά κείμενα", "https://example.com/a?b=c&d=e#f",
    "$100 + 50% = €150 £3", "…—–“quoted” ‘single’ «fr»",
    "'s 't 're 've 'm 'll 'd 'S 'LL", " 1 22 333 4444 55555 666666",
    "0x1F 3.14e-10 1,000,000", "\u00a0nbsp\u2003em\u3000ideographic", "x" * 40,
    "= " * 20, "!!!???...;;;", "\n\n\n\n", "   \n   \n", "ab\u200dcd\u200b",
    "ﬁligature K ſ", "a/b/c\\d", "word/\n/word", "中文abc混合123テスト",
    "한국어English混", "က ခ ဂ ລາວ ខ្មែរ", "12345 dogs' houses x\n"]
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def vocabulary():
    """Bytes, tokens of merges that know no words, and whole words that no
    merges make."""
    tokens = [kinds.BYTES[b] for b in range(256)]
    whole = ["".join(kinds.BYTES[b] for b in word.encode())
             for word in ("dogs", " houses", "Ещё", "世界", "camelCase")]
    texts = [[kinds.BYTES[b] for b in text.encode()] for text in TEXTS]
    merges = []
    while len(merges) < 600:
        pairs = collections.Counter()
        for text in texts:
            pairs.update(zip(text, text[1:]))
        (a, b), _ = max((item for item in pairs.items()
                         if item[0][0] + item[0][1] not in whole + SPECIAL),
                        key=lambda item: (item[1], item[0]))
        merges.append((a, b))
        tokens.append(a + b)
        for n, text in enumerate(texts):
            out = []
            for token in text:
                if out and (out[-1], token) == (a, b):
                    out[-1] = a + b
                else:
                    out.append(token)
            texts[n] = out
    return list(dict.fromkeys(tokens + whole)), merges


def write(path, name, tokens, merges):
    writer = gguf.Writer()
    ids = {SPECIAL[0]: len(tokens), SPECIAL[1]: len(tokens) + 1}
    for key, kind, value in (
            ("model", "string", "gpt2"), ("pre", "string", name),
            ("tokens", "string[]", tokens + SPECIAL),
            ("token_type", "i32[]", [1] * len(tokens) + [3] * len(SPECIAL)),
            ("merges", "string[]", [a + " " + b for a, b in merges]),
            ("bos_token_id", "u32", ids[SPECIAL[0]]),
            ("eos_token_id", "u32", ids[SPECIAL[1]])):
        writer.key("tokenizer.ggml." + key, kind, value)
    writer.write(path)


def digest(ids):
    return hashlib.sha256(ids.encode()).hexdigest()[:6]


def main():
    folder, *command = sys.argv[1:]
    with open(EXPECTED, encoding="utf-8") as file:
        expected = json.load(file)
    tokens, merges = vocabulary()
    texts, path = os.path.join(folder, "texts"), os.path.join(folder, "m.gguf")
    with open(texts, "w", encoding="utf-8") as file:
        file.write("".join(json.dumps(text) + "\n" for text in TEXTS))
    names = compared = different = 0
    for entry in expected:
        for name in entry["names"]:
            write(path, name, tokens, merges)
            run = subprocess.run(command + [path, "--texts=" + texts],
                                 capture_output=True, text=True)
            lines = run.stdout.split("\n")[:-1]
            warned = "is 'default': texts are cut as" in run.stderr
            wrong = [i for i, (line, known) in enumerate(
                zip(lines, entry["ids"])) if known and digest(line) != known]
            if warned != (name == "default"):
                wrong.append(0)
            if len(lines) != len(TEXTS) or wrong:
                print(name, run.stderr, [(TEXTS[i], lines[i]) for i in wrong])
            names += 1
            compared += sum(known is not None for known in entry["ids"])
            different += len(wrong) + abs(len(lines) - len(TEXTS))
    print(f"{names} names, {compared} texts, {different} differ")
    return different != 0


if __name__ == "__main__":
    sys.exit(main())
