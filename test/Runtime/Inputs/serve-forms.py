# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-forms.py PRODUCT [log | rings | pieces]: texts of unequal length are those of
`generate`.

With `log` the model is one that decodes one text at a time, and says so. With
`rings` texts are longer than the caches of its windows. With `pieces` a prompt
is long enough to be cut, which changes no bit where there is no window.
"""

import json
import subprocess
import sys

import serving

COUNTS = ["attune_new_tokens_total", "attune_decode_steps_total"]


def prompt(number, length):
    return [(7 * number + 13 * i * i + i) % 1000 for i in range(length)]


def generate(ids, tokens):
    run = subprocess.run(
        [sys.argv[1], "generate", "--prompt-ids", ",".join(map(str, ids)),
         f"--max-new-tokens={tokens}", "--ignore-eos", "--logprobs=2",
         "--format=json"], capture_output=True, text=True, check=True)
    return [token["logprob"] for token in json.loads(run.stdout)["logprobs"]]


def compare(lengths, tokens):
    """Gives how many tokens there were and in how many steps."""
    prompts = [prompt(*each) for each in enumerate(lengths)]
    wanted = [generate(ids, tokens) for ids in prompts]
    before = [server.metric(name) for name in COUNTS]
    # One request with all prompts, for they would come apart as several ones.
    reply = server.post("/v1/completions", {
        "prompt": prompts, "max_tokens": tokens, "ignore_eos": True,
        "logprobs": 2})
    for choice, logprobs in zip(reply["choices"], wanted, strict=True):
        served = choice["logprobs"]["token_logprobs"]
        assert served == logprobs, (choice["index"], logprobs, served)
    return [server.metric(name) - was for name, was in zip(COUNTS, before)]


def together():
    # Prompts of less than 80 tokens are never cut: windows have other sums in
    # other pieces (lib/Runtime/Serve/README.md).
    made, steps = compare([3, 60, 1, 24], 40)
    # Texts that never shared a step would take one for each token but the
    # first of each; how many they share depends on the machine, for prompts
    # get a share of the time.
    assert made == 160 and steps < 156, (made, steps)


def cut_in_pieces():
    compare([3, 150, 1, 24], 40)


def longer_than_rings():
    """Again in the same slots, which remember only the ends."""
    for _ in range(2):
        compare([3, 34, 1], 300)


def slots_again():
    compare([20, 2, 41, 5, 1, 30], 20)


def one_by_one():
    made, steps = compare([3, 12], 8)
    assert made == 16 and steps == 14, (made, steps)


with serving.Server(sys.argv[1:2], "--slots=4") as server:
    log = sys.argv[2:] == ["log"]
    rings = sys.argv[2:] == ["rings"]
    pieces = sys.argv[2:] == ["pieces"]
    serving.run([one_by_one] if log else [longer_than_rings] if rings
                else [cut_in_pieces] if pieces
                else [together, slots_again])
    assert server.stop() == 0
    if log:
        sys.stdout.flush()
        print(server.read_log())
