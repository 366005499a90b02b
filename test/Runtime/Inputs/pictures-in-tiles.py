# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pictures-in-tiles.py PRODUCT FOLDER: pictures that take a number of tokens each of
its own, in chats and in requests to a server, where the texts must be those of
`generate --image`. FOLDER has the pictures of test/lib/tiles.py, whose model of the
kind idefics3 the product is."""

import base64
import json
import subprocess
import sys
import threading

import serving

PRODUCT, FOLDER = sys.argv[1:3]
IMAGE, EACH, TOKENS = 22, 4, 5
OPTIONS = ["--greedy", f"--max-new-tokens={TOKENS}", "--ignore-eos"]
# Tiles, with the whole picture.
TILES = {"a": 7, "b": 7, "c": 10}


def generate(prompt, pictures):
    run = subprocess.run(
        [PRODUCT, "generate", *OPTIONS, "--format=json", *prompt,
         *[f"--image={FOLDER}/{name}.png" for name in pictures]],
        capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["text"]


def about(message, *pictures):
    return generate(["--chat", "--prompt", message], pictures)


def ids_of(*messages):
    """Texts, and in lists pictures and texts, as the template lays them out."""
    ids = []
    for message in messages:
        ids.append(18)
        for part in [message] if isinstance(message, str) else message:
            ids += [IMAGE] if part in TILES and isinstance(message, list) else [
                ord(c) - 97 for c in part]
    return ",".join(map(str, ids + [0]))


def chats():
    first = about("dcefg", "a")
    lines = [f"/image {FOLDER}/a.png", "dcefg", f"/image {FOLDER}/c.png", "hij"]
    run = subprocess.run([PRODUCT, "chat", "--stats", *OPTIONS[:2]],
                         input="\n".join(lines) + "\n", capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()
    wanted = generate(["--prompt-ids", ids_of(["a", "dcefg"], said[0], ["c", "hij"])],
                      "ac")
    assert wanted.startswith(said[1]) and first.startswith(said[0]), (said, first, wanted)
    assert " from the cache)" in run.stderr, run.stderr


def picture(name):
    with open(f"{FOLDER}/{name}.png", "rb") as file:
        data = base64.b64encode(file.read()).decode()
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}}


def ask(content, status=200):
    return server.post("/v1/chat/completions", {
        "messages": [{"role": "user", "content": content}], "max_tokens": TOKENS,
        "ignore_eos": True}, status=status)


def parts(words, *pictures):
    return [*map(picture, pictures), {"type": "text", "text": words}]


def requests():
    alone = {}
    for names in ("a", "b", "c", "ab"):
        reply = ask(parts("dcefg", *names))
        alone[names] = reply["choices"][0]["message"]["content"]
        assert alone[names] == about("dcefg", *names), (names, reply)
        assert reply["usage"]["prompt_tokens"] > EACH * sum(
            TILES[name] for name in names), reply
    got = {}

    def run(names):
        reply = ask(parts("dcefg", *names))
        got[names] = reply["choices"][0]["message"]["content"]
    threads = [threading.Thread(target=run, args=[names]) for names in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == alone, (got, alone)


def request_errors():
    reply = ask(parts("d", *"aaaaaaaaaa"), status=400)
    assert "10 pictures of 256 tokens or more leave no room" in \
        reply["error"]["message"], reply


serving.run([chats])
with serving.Server([PRODUCT], "--slots=3") as server:
    serving.run([requests, request_errors])
    server.stop()
