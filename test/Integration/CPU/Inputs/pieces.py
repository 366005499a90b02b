# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Beams that read two pictures in several steps write what those do that read
them in one.

  pieces.py PIECES WHOLE

PIECES and WHOLE are one model of test/lib/qwen_vl.py with a window, whose cache
has room for the prompt in WHOLE alone. In the current folder are the pictures
a.png and b.png. The first step of PIECES ends within the first picture, the second
one within the other.
"""
import random
import subprocess
import sys

IMAGE, LETTERS, EACH, STEP, TOKENS = 37, 34, 12, 128, 5


def generate(program, ids, beams, pictures):
    return subprocess.run(
        [program, "generate", "--prompt-ids=" + ",".join(map(str, ids)),
         *[f"--image={name}.png" for name in pictures], "--greedy",
         "--ignore-eos", f"--max-new-tokens={TOKENS}", "--format=ids",
         f"--beams={beams}"],
        capture_output=True, text=True, check=True).stdout


def main():
    pieces, whole = sys.argv[1:]
    draw = random.Random(5)

    def words(count):
        return [draw.randrange(LETTERS) for _ in range(count)]
    equal, differ = True, False
    for behind in (38, 42, 58):
        ids = (words(STEP - EACH // 2 - 1) + [IMAGE]
               + words(STEP - EACH) + [IMAGE] + words(behind))
        for beams in (1, 2, 3):
            expected = generate(whole, ids, beams, "ab")
            found = generate(pieces, ids, beams, "ab")
            equal &= found == expected
            differ |= expected != generate(whole, ids, beams, "aa")
    print("equal:", equal, "seen:", differ)
    return 0 if equal and differ else 1


if __name__ == "__main__":
    sys.exit(main())
