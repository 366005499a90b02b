# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pictures-both-ways.py PRODUCT LIB: chats and requests about pictures whose
tokens see each other, where the texts must be those of `generate --image`. In
the current folder are the pictures a.png and b.png of LIB/gemma_vision.py, whose
Gemma 3 the product is."""

import base64
import json
import subprocess
import sys
import threading

import serving

sys.path.insert(0, sys.argv[2])
import gemma_vision  # noqa: E402

TOKENS, EACH, MOST = 6, 4, 16
OPTIONS = ["--greedy", f"--max-new-tokens={TOKENS}"]
# The second is shorter than what is computed again of a prompt.
QUESTION, SHORT = "vkc0ymomycyffeaes3o0vet1tpwle", "dab"
IDS = gemma_vision.tokenizer("gemma3")["model"]["vocab"]


def generate(*options):
    run = subprocess.run([sys.argv[1], "generate", *OPTIONS, "--format=json",
                          *options], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["text"]


def about(message, *pictures):
    return generate("--chat", "--prompt", message,
                    *[f"--image={name}.png" for name in pictures])


def ids_of(text):
    """Runs of newlines are one token, all else is a character or special."""
    ids = []
    while text:
        token = max((t for t in IDS if text.startswith(t)), key=len)
        ids.append(IDS[token])
        text = text[len(token):]
    return ",".join(map(str, ids))


SEEN = "\n\n<start_of_image><image_soft_token><end_of_image>\n\n"


def chats():
    first, second = about(QUESTION, "a"), about(QUESTION, "b")
    assert first != second, (first, second)
    lines = ["/image a.png", QUESTION, "/image b.png", SHORT, "/reset",
             "/image b.png", QUESTION]
    run = subprocess.run([sys.argv[1], "chat", *OPTIONS, "--stats"],
                         input="\n".join(lines) + "\n", capture_output=True,
                         text=True, check=True)
    wanted = generate(
        "--prompt-ids", ids_of(f"<bos>u\n{SEEN}{QUESTION}u\n{first}u\n{SEEN}"
                               f"{SHORT}\na"), "--image=a.png", "--image=b.png")
    assert run.stdout == f"{first}\n{wanted}\n{second}\n", (
        run.stdout, first, wanted, second)


def picture(name):
    with open(f"{name}.png", "rb") as file:
        data = base64.b64encode(file.read()).decode()
    return {"type": "image_url",
            "image_url": {"url": "data:image/png;base64," + data}}


def ask(words, *pictures):
    parts = [picture(name) for name in pictures]
    reply = server.post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": parts + [
            {"type": "text", "text": words}]}], "max_tokens": TOKENS})
    details = reply["usage"]["prompt_tokens_details"]
    return (reply["choices"][0]["message"]["content"], details["cached_tokens"],
            reply["usage"]["prompt_tokens"])


def requests():
    first = about(QUESTION, "a")
    said, cached, length = ask(QUESTION, "a")
    # What the template and the processor put around them.
    assert (said, cached, length) == (first, 0, 4 + EACH + 2 + 29 + 2), (
        said, first, cached, length)
    # All before what is computed again, but at least so much behind a picture.
    said, cached, _ = ask(QUESTION, "a")
    assert (said, cached) == (first, length - MOST), (said, first, cached)
    # The last tokens that are computed again begin within the picture, so that
    # all of it is; what is before it is too short to be kept.
    wanted = about(SHORT, "a")
    for _ in range(2):
        said, cached, _ = ask(SHORT, "a")
        assert (said, cached) == (wanted, 0), (said, wanted, cached)
    # Two pictures, the first of which is kept.
    wanted = about(QUESTION, "a", "b")
    said, cached, _ = ask(QUESTION, "a", "b")
    assert (said, cached) == (wanted, 4 + EACH), (said, wanted, cached)
    assert ask(SHORT, "b", "a")[:2] == (about(SHORT, "b", "a"), 0)


def together():
    wanted = {name: about(QUESTION, *name) for name in ("a", "b", "ab", "")}
    got = []

    def run(name):
        got.append((name, ask(QUESTION, *name)[0]))
    threads = [threading.Thread(target=run, args=[name])
               for name in ["a", "b", "", "ab", "b", "a", "", "ab"]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(threads)
    for name, answer in got:
        assert answer == wanted[name], (name, answer, wanted[name])


serving.run([chats])
with serving.Server([sys.argv[1]], "--slots=3") as server:
    serving.run([requests, together])
    server.stop()
