# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokenizer files other than tokenizer.json give the ids of their references.

    python3 conversions.py FOLDER COMMAND...

COMMAND is `attune tokenize`. The files of kinds.py stand for vocab.json and
merges.txt, vocab.txt, *.tiktoken and tekken.json: these are written anew from their
vocabularies and must give the same ids (which kinds.test compares with the
reference). SentencePiece's models in Inputs come from its own trainer, and
their ids from its own encoder (Debian's package sentencepiece, 0.1.97):

    python3 conversions.py --record FOLDER

Tokenizers in GGUF files give the ids of the tokenizer.json that they stand for:

    python3 conversions.py --gguf FOLDER COMMAND...
"""
import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import unicodedata

import kinds

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "lib"))
import gguf

INPUTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs")
RECORD = os.path.join(INPUTS, "expected-sentencepiece.json")
# Both pretrained layouts: Llama's (BPE, bytes for what is unknown, spaces as
# they are) and T5's (Unigram, text normalized, spaces taken together).
TRAINED = {
    "bpe": ["--byte_fallback=true", "--normalization_rule_name=identity",
            "--remove_extra_whitespaces=false", "--split_digits=true",
            "--vocab_size=1200"],
    "unigram": ["--normalization_rule_tsv=RULES", "--vocab_size=1000",
                "--user_defined_symbols=<sep>", "--control_symbols=<ctl>",
                "--pad_id=3"],
}
RULES = {"\ufb01": "fi", "½": "1⁄2", "№": "No", "™": "TM", "\t": " ",
         "e\u0301": "é", **{chr(0xFF10 + i): str(i) for i in range(10)}}


def marked(text):
    """A mark behind what the rules change: the library `tokenizers`, whose
    meaning the product's files have, changes the two together."""
    return any(unicodedata.combining(behind) and before in RULES
               for before, behind in zip(text, text[1:]))


def plain_texts():
    """SentencePiece has no specials in a text; U+2581 is a space to it."""
    taken = ("<s>", "</s>", "<unk>", "<pad>", "<sep>", "<ctl>", "\u2581",
             "\n", "\r", "\0")
    return [text for text in kinds.texts(3000, 5)
            if not any(word in text for word in taken) and not marked(text)]


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def train(folder):
    corpus, rules = (os.path.join(folder, name) for name in ("text", "rules"))
    with open(corpus, "w") as file:
        file.write(kinds.CORPUS.replace("\r", ""))
    points = lambda text: " ".join(f"{ord(c):X}" for c in text)
    with open(rules, "w") as file:
        for key, value in RULES.items():
            file.write(points(key) + "\t" + points(value) + "\n")
    record = {}
    for kind, flags in TRAINED.items():
        model = os.path.join(INPUTS, "sentencepiece-" + kind)
        subprocess.run(
            ["spm_train", "--input=" + corpus, "--model_prefix=" + model,
             "--model_type=" + kind, "--num_threads=1",
             "--hard_vocab_limit=false", "--character_coverage=0.98"] +
            [flag.replace("RULES", rules) for flag in flags],
            check=True, capture_output=True)
        os.remove(model + ".vocab")
        ids = subprocess.run(
            ["spm_encode", "--model=" + model + ".model",
             "--output_format=id"], check=True, capture_output=True,
            input="\n".join(plain_texts()) + "\n", text=True).stdout
        lines = [line.replace(" ", ",") for line in ids.split("\n")[:-1]]
        record[kind] = {"hash": digest(lines), "some": lines[8:12]}
    with open(RECORD, "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")


class Folder:
    """A folder with a tokenizer in it, and the ids that a command gives."""

    def __init__(self, path, command):
        self.path, self.command = path, command
        os.makedirs(path, exist_ok=True)

    def write(self, name, content):
        with open(os.path.join(self.path, name), "w", newline="") as file:
            file.write(content)

    def ids(self, texts, tokenizer=None):
        self.write("texts.jsonl",
                   "".join(json.dumps(text) + "\n" for text in texts))
        found = subprocess.run(
            self.command + [self.path, "--plain", "--texts=" +
                            os.path.join(self.path, "texts.jsonl")] +
            (["--tokenizer=" + tokenizer] if tokenizer else []),
            capture_output=True, text=True)
        if found.returncode or found.stderr:
            sys.exit(found.stderr)
        return found.stdout.split("\n")[:-1]


def as_bytes(token):
    of = {character: byte for byte, character in kinds.BYTES.items()}
    return bytes(of[c] for c in token)


def write_vocab_and_merges(folder, model):
    folder.write("vocab.json", json.dumps(model["vocab"]))
    folder.write("merges.txt", "#version: 0.2\n" +
                 "".join(merge + "\n" for merge in model["merges"]))


def write_vocab_text(folder, model):
    folder.write("vocab.txt", "".join(token + "\n" for token in model["vocab"]))


def write_ranks(folder, model):
    folder.write("test.tiktoken", "".join(
        base64.b64encode(as_bytes(token)).decode() + f" {i}\n"
        for token, i in model["vocab"].items()))


def check_tekken(root, command, llama):
    """Special tokens come first, here those of `llama` behind three more, and
    two ids that no token has. Files have more tokens than they use."""
    made = json.loads(json.dumps(llama))
    names = ["<unk>", "<s>", "</s>"] + [
        token["content"] for token in made["added_tokens"]]
    count = len(names) + 2
    vocab = made["model"]["vocab"]
    used = max(vocab.values()) + 1
    made["model"]["vocab"] = {token: i + count for token, i in vocab.items()}
    made["added_tokens"] = [
        {"id": i, "content": name, "special": True, "normalized": False}
        for i, name in enumerate(names + [f"<SPECIAL_{count - 2}>",
                                          f"<SPECIAL_{count - 1}>"])]
    whole = Folder(os.path.join(root, "tekken-whole"), command)
    whole.write("tokenizer.json", json.dumps(made))
    folder = Folder(os.path.join(root, "tekken"), command)
    pattern = made["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    by_rank = sorted(vocab, key=vocab.get)
    assert [vocab[token] for token in by_rank] == list(range(used))
    folder.write("tekken.json", json.dumps({
        "config": {"pattern": pattern, "num_vocab_tokens": used + 1,
                   "default_vocab_size": used + count,
                   "default_num_special_tokens": count, "version": "v13"},
        "vocab": [{"rank": i, "token_str": None,
                   "token_bytes": base64.b64encode(as_bytes(token)).decode()}
                  for i, token in enumerate(by_rank)] + [
                      {"rank": used, "token_str": None, "token_bytes":
                       base64.b64encode(b"Hello wor").decode()}],
        "special_tokens": [{"rank": i, "token_str": name, "is_control": True}
                           for i, name in enumerate(names)],
        "image": {"image_patch_size": 14}}))
    texts = list(kinds.texts(500, 3)) + ["<s>Hello world</s><SPECIAL_6>x"]
    return check("tekken", whole.ids(texts), folder.ids(texts))


# Names that GGUF files give to what they cut texts at, and the kind that is.
CUTS = {"gpt-2": "gpt2", "llama-bpe": "llama3", "gpt-4o": "o200k",
        "kimi-k2": "kimi", "bloom": "bloom", "deepseek-v3": "deepseek",
        "starcoder": "starcoder"}

def words_of_kimi():
    """The kind of that name lacks words in capitals."""
    upper = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
    lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
    before, behind = r"[^\r\n\p{L}\p{N}]?", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    return "|".join([r"[\p{Han}]+", f"{before}{upper}*{lower}+{behind}",
                     f"{before}{upper}+{lower}*{behind}", r"\p{N}{1,3}",
                     r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+",
                     r"\s+(?!\S)", r"\s+"])


def write_gguf(folder, made, cuts=""):
    """The tokenizer as a GGUF file; of BERT pieces begin with a sign where a
    word does."""
    model, writer = made["model"], gguf.Writer()
    special = {token["id"]: token for token in made["added_tokens"]}
    if model["type"] == "Unigram":
        words, scores = zip(*model["vocab"])
        words = list(words)
    else:
        words = [""] * len(model["vocab"])
        for token, i in model["vocab"].items():
            words[i] = token
    for i in sorted(special):
        words += [""] * (i + 1 - len(words))
        words[i] = special[i]["content"]
    kinds_of = [3 if i in special and special[i]["special"]
                else 4 if i in special else 1 for i in range(len(words))]
    if model["type"] == "WordPiece":
        words = [word if kind == 3 else word[2:] if word.startswith("##")
                 else "\u2581" + word for word, kind in zip(words, kinds_of)]
        name = "bert"
        for key, token in (("cls", "[CLS]"), ("seperator", "[SEP]"),
                           ("unknown", "[UNK]")):
            writer.key(f"tokenizer.ggml.{key}_token_id", "u32",
                       words.index(token))
    elif model["type"] == "Unigram":
        name = "t5"
        kinds_of[model["unk_id"]] = 2
        scores = list(scores) + [0.0] * (len(words) - len(scores))
        writer.key("tokenizer.ggml.scores", "f32[]", scores)
        for key in ("add_space_prefix", "remove_extra_whitespaces"):
            writer.key("tokenizer.ggml." + key, "bool", True)
        writer.key("tokenizer.ggml.precompiled_charsmap", "u8[]",
                   base64.b64decode(made["normalizer"]["precompiled_charsmap"]))
    else:
        name = "gpt2"
        writer.key("tokenizer.ggml.pre", "string", cuts)
        writer.key("tokenizer.ggml.merges", "string[]", [
            merge if isinstance(merge, str) else " ".join(merge)
            for merge in model["merges"]])
    writer.key("tokenizer.ggml.model", "string", name)
    writer.key("tokenizer.ggml.tokens", "string[]", words)
    writer.key("tokenizer.ggml.token_type", "i32[]", kinds_of)
    writer.write(os.path.join(folder.path, "model.gguf"))


def check_gguf(root, command, all_kinds):
    texts, good = list(kinds.texts(300, 7)), True
    for cuts, kind in [*CUTS.items(), ("", "bert"), ("", "t5")]:
        made = json.loads(json.dumps(all_kinds[kind]))
        if kind == "kimi":
            made["model"]["ignore_merges"] = True
            made["pre_tokenizer"]["pretokenizers"][0]["pattern"] = {
                "Regex": words_of_kimi()}
        if kind == "t5":
            # Scores are of f32 there, and the sign of a space is one.
            for piece in made["model"]["vocab"]:
                piece[1] = struct.unpack("<f", struct.pack("<f", piece[1]))[0]
            texts = [text for text in texts if not set(text) & set("\u2581\r\n")]
        whole = Folder(os.path.join(root, kind + "-whole"), command)
        whole.write("tokenizer.json", json.dumps(made))
        folder = Folder(os.path.join(root, "gguf-" + kind), command)
        write_gguf(folder, made, cuts)
        good &= check(f"{cuts or kind} of GGUF", whole.ids(texts),
                      folder.ids(texts))
    return good


def check(name, want, got):
    wrong = [i for i, pair in enumerate(zip(want, got)) if pair[0] != pair[1]]
    wrong += [len(got)] if len(want) != len(got) else []
    print(f"{name}: {len(got)} texts, {len(wrong)} differ")
    for i in wrong[:3]:
        print("  expected", want[i:i + 1], "\n  found   ", got[i:i + 1])
    return not wrong


def main():
    if sys.argv[1] == "--record":
        return train(sys.argv[2])
    if sys.argv[1] == "--gguf":
        known = dict(kinds.byte_level_kinds())
        known.update(kinds.word_kinds())
        known.update(kinds.unigram_kinds())
        return 0 if check_gguf(sys.argv[2], sys.argv[3:], known) else 1
    root, *command = sys.argv[1:]
    good, all_kinds = True, dict(kinds.byte_level_kinds())
    all_kinds.update(kinds.word_kinds())
    for kind, write in (("gpt2", write_vocab_and_merges),
                        ("bert", write_vocab_text), ("llama3", write_ranks)):
        made = all_kinds[kind]
        whole = Folder(os.path.join(root, kind), command)
        whole.write("tokenizer.json", json.dumps(made))
        parts = Folder(os.path.join(root, kind + "-parts"), command)
        write(parts, made["model"])
        # The other files have no added tokens; this one brings them.
        parts.write("tokenizer_config.json", json.dumps(
            {"added_tokens_decoder": {
                str(token.pop("id")): token
                for token in map(dict, made["added_tokens"])}}))
        texts = list(kinds.texts(500, 3))
        good &= check(kind, whole.ids(texts), parts.ids(texts))
    good &= check_tekken(root, command, all_kinds["llama3"])
    with open(RECORD) as file:
        record = json.load(file)
    for kind, known in record.items():
        folder = Folder(os.path.join(root, "sentencepiece"), command)
        lines = folder.ids(plain_texts(), os.path.join(
            INPUTS, f"sentencepiece-{kind}.model"))
        good &= check(kind + " of SentencePiece", known["some"], lines[8:12])
        if digest(lines) != known["hash"]:
            print("  the ids of all", len(lines), "texts differ")
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
