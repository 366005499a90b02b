# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""close_entropies.py ONE.json OTHER.json MOST: what `perplexity` says of one text.

Fails if the texts have other numbers of tokens, or if the cross-entropies differ by
more than MOST.
"""
import json
import sys


def main():
    one, other = (json.load(open(path, encoding="utf-8"))
                  for path in sys.argv[1:3])
    assert one["tokens"] == other["tokens"], (one, other)
    apart = abs(one["cross_entropy"] - other["cross_entropy"])
    assert apart <= float(sys.argv[3]), (one, other)
    print(one["tokens"], "tokens, close")


if __name__ == "__main__":
    main()
