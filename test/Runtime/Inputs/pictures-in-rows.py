# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pictures-in-rows.py PRODUCT: chats and requests about pictures in rows that end
with tokens of their own, where the texts must be those of `generate --image`. In
the current folder are the pictures a.png and b.png of test/lib/pixtral.py, whose
Mistral 3 the product is."""

import base64
import json
import subprocess
import sys

import serving

TOKENS = 6
OPTIONS = ["--greedy", f"--max-new-tokens={TOKENS}"]
QUESTION = "what1is1in1this1picture1here"
# Two rows of three vectors, each with a token behind it.
PICTURE = 2 * (3 + 1)
ALL = "[IMG][IMG][IMG][IMG_BREAK][IMG][IMG][IMG][IMG_END]"


def generate(*options):
    run = subprocess.run([sys.argv[1], "generate", *OPTIONS, "--format=json",
                          *options], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["text"]


def about(message, *pictures):
    return generate("--chat", "--prompt", message,
                    *[f"--image={name}.png" for name in pictures])


def chats():
    first, second = about(QUESTION, "a"), about(QUESTION, "b")
    assert first != second, (first, second)
    lines = ["/image a.png", QUESTION, "/image b.png", "and1this"]
    run = subprocess.run([sys.argv[1], "chat", *OPTIONS],
                         input="\n".join(lines) + "\n", capture_output=True,
                         text=True, check=True)
    wanted = generate(f"--prompt=u{ALL}{QUESTION}u{first}u{ALL}and1thisa",
                      "--image=a.png", "--image=b.png")
    assert run.stdout == f"{first}\n{wanted}\n", (run.stdout, first, wanted)


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
    return (reply["choices"][0]["message"]["content"],
            reply["usage"]["prompt_tokens"])


def requests():
    words = 2 + len(QUESTION)
    for names in ("a", "b", "ab", "ba", ""):
        said = ask(QUESTION, *names)
        assert said == (about(QUESTION, *names), words + PICTURE * len(names)), (
            names, said)


serving.run([chats])
with serving.Server([sys.argv[1]], "--slots=2") as server:
    serving.run([requests])
    server.stop()
