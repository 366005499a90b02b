# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check.py EXPECTED.json FOLDER COMMAND...: ids of all kinds against the record.

COMMAND with the name of a kind behind it prints a line of ids for each text.
EXPECTED has, for each kind, a hash of all lines and a few as they are; of many
lines a hash for each 10,000. With --record as first argument EXPECTED is
written instead; the command is the oracle's then:

    python3 kinds.py DIR 400 7
    python3 check.py --record Inputs/expected.json DIR node oracle.mjs DIR
"""
import glob
import hashlib
import json
import os
import subprocess
import sys

SHOWN = slice(8, 14)
CHUNK = 10000


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def summary(lines):
    if len(lines) <= CHUNK:
        return {"hash": digest(lines)[:16], "lines": len(lines) - 1,
                "some": lines[SHOWN]}
    return {"lines": len(lines) - 1,
            "hashes": " ".join(digest(lines[i:i + CHUNK])[:8]
                               for i in range(0, len(lines), CHUNK))}


def texts_hash(folder):
    with open(os.path.join(folder, "texts.jsonl"), "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def main():
    arguments = sys.argv[1:]
    record = arguments[0] == "--record"
    expected, folder, *command = arguments[record:]
    found, wrong = {}, 0
    texts = texts_hash(folder)
    if not record:
        with open(expected) as file:
            known = json.load(file)
        if known.pop("texts") != texts:
            sys.exit("texts.jsonl is not what was recorded: this Python may "
                     "know another version of Unicode; record anew")
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        name = os.path.basename(path)[:-len(".json")]
        words = [word.replace("KIND", path) for word in command]
        if words == command:
            words.append(name)
        lines = subprocess.run(words, check=True, capture_output=True,
                               text=True).stdout.split("\n")
        found[name] = summary(lines)
    if record:
        found["texts"] = texts
        with open(expected, "w") as file:
            json.dump(found, file, indent=1, sort_keys=True)
            file.write("\n")
        return
    for name in sorted(known.keys() | found.keys()):
        if known.get(name) != found.get(name):
            wrong += 1
            print(name, "differs")
            for want, got in zip(known.get(name, {}).get("some", []),
                                 found.get(name, {}).get("some", [])):
                if want != got:
                    print("  expected", want)
                    print("  found   ", got)
    print(len(found), "kinds,", wrong, "differ")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
