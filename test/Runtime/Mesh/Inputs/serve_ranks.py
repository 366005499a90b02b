# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve_ranks.py FOLDER ONE COMMAND...: what ranks serve is what one writes.

FOLDER has serving.py, ONE is the program of one process, and COMMAND starts the
ranks of the same model.
"""
import subprocess
import sys
import threading

sys.path.append(sys.argv[1])
import serving  # noqa: E402

PROMPTS = ["Once upon a time", "The next day", "One day a fox",
           "In a small house by the lake there lived an old man"]


def wanted(prompt):
    return subprocess.run(
        [sys.argv[2], "generate", "--prompt", prompt, "--greedy",
         "--max-new-tokens=24"],
        capture_output=True, text=True, check=True).stdout.rstrip("\n")


def score(server, prompt):
    reply = server.post("/v1/completions", {
        "prompt": prompt, "max_tokens": 1, "temperature": 0, "echo": True,
        "logprobs": 1})
    return reply["choices"][0]["logprobs"]["token_logprobs"]


def main():
    with serving.Server([sys.argv[2]]) as server:
        scores = score(server, PROMPTS[3])
        server.stop()
    texts = [wanted(prompt) for prompt in PROMPTS]
    got = [None] * len(PROMPTS)
    with serving.Server(sys.argv[3:]) as server:
        def post(i):
            reply = server.post("/v1/completions", {
                "prompt": PROMPTS[i], "max_tokens": 24, "temperature": 0})
            got[i] = reply["choices"][0]["text"]
        post(0)
        threads = [threading.Thread(target=post, args=(i,))
                   for i in range(1, len(PROMPTS))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Ranks add up in another order: logits up to 24 are right to 1e-4.
        assert all(abs(a - b) < 1e-4 for a, b in
                   zip(scores[1:], score(server, PROMPTS[3])[1:],
                       strict=True)), scores
        server.stop()
        print(server.read_log())
    assert got == texts, (got, texts)
    print("ok", len(texts), "texts")


if __name__ == "__main__":
    main()
