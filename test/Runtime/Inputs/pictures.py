# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pictures.py PRODUCT: pictures in chats and in requests to a server, where the
texts must be those of `generate --image`. In the current folder are the
pictures a.png and b.png of test/lib/qwen_vl.py, whose model the product is."""

import base64
import json
import struct
import subprocess
import sys
import threading
import zlib

import serving

LETTERS = "abcdefghijklmnopqrstuvwxyz012345678"
START, END, IMAGE, EACH, TOKENS = 35, 36, 37, 12, 6
OPTIONS = ["--greedy", f"--max-new-tokens={TOKENS}"]
QUESTION = "what1is1in1this1picture1here"


def generate(*options):
    run = subprocess.run([sys.argv[1], "generate", *OPTIONS, "--format=json",
                          *options], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["text"]


def about(message, *pictures):
    """What the model says of a message with pictures before it."""
    return generate("--chat", "--prompt", message,
                    *[f"--image={name}.png" for name in pictures])


def ids_of(*messages):
    """Texts, and in lists pictures and texts, as the template lays them out."""
    ids = []
    for message in messages:
        ids.append(LETTERS.index("u"))
        for part in [message] if isinstance(message, str) else message:
            if part in ("a.png", "b.png"):
                ids += [START, IMAGE, END]
            else:
                ids += [LETTERS.index(c) for c in part]
    return ",".join(map(str, ids + [LETTERS.index("a")]))


def chat(lines, *options, code=0):
    run = subprocess.run([sys.argv[1], "chat", *OPTIONS, *options],
                         input="\n".join(lines) + "\n", capture_output=True,
                         text=True)
    assert run.returncode == code, run.stderr
    return run.stdout.splitlines(), run.stderr


def chats():
    first, second = about(QUESTION, "a"), about(QUESTION, "b")
    assert first != second and len(first) > 1, (first, second)
    # The same text about two pictures, one after the other.
    said, notes = chat(["/image a.png", QUESTION, "/reset", "/image b.png",
                        QUESTION, "/reset", QUESTION], "--stats")
    assert said == [first, second, about(QUESTION)], (said, first, second)
    # All before the picture is in the cache, and nothing behind it.
    assert "a.png is shown with the next message" in notes, notes
    assert "(42 tokens computed before the answer, 2 from the cache)" in notes, \
        notes
    said, _ = chat([QUESTION], "--image=a.png")
    assert said == [first], said
    # A picture stays what it is while others come.
    said, notes = chat([QUESTION, "/image  b.png ", "and1this", "/save talk.json"],
                       "--image=a.png", "--stats")
    wanted = generate("--prompt-ids", ids_of(["a.png", QUESTION], first,
                                             ["b.png", "and1this"]),
                      "--image=a.png", "--image=b.png")
    assert said == [first, wanted], (said, wanted)
    assert "43 from the cache)" in notes, notes
    with open("talk.json") as file:
        saved = json.load(file)
    assert saved[2] == {"role": "user", "content": [
        {"type": "image", "path": "b.png"},
        {"type": "text", "text": "and1this"}]}, saved
    # The message says where.
    said, _ = chat(["/image a.png", "is<|image_pad|>good"])
    assert said == [about("is<|image_pad|>good", "a")], said


def chat_errors():
    _, notes = chat(["/image none.png"], code=1)
    assert "none.png" in notes, notes
    _, notes = chat(["/image"], code=1)
    assert "/image needs a file's name" in notes, notes
    _, notes = chat(["/image talk.json"], code=1)
    assert "talk.json: is neither a PNG nor a JPEG file" in notes, notes
    _, notes = chat(["x"], "--image=a.png", "--context=16", code=1)
    assert "has 17 tokens, but the context holds 16" in notes, notes
    _, notes = chat(["/image a.png", "<|image_pad|><|image_pad|>"], code=1)
    assert "the prompt has 2 image tokens (id 37) for 1 picture" in notes, notes


def url_of(data, kind="png"):
    return f"data:image/{kind};base64," + base64.b64encode(data).decode()


def picture(name):
    with open(f"{name}.png", "rb") as file:
        return {"type": "image_url", "image_url": {"url": url_of(file.read())}}


def text(words):
    return {"type": "text", "text": words}


def ask(*messages, status=200, **more):
    """Messages of the user and of the model in turns."""
    return server.post("/v1/chat/completions", {
        "messages": [{"role": "assistant" if i % 2 else "user",
                      "content": content} for i, content in enumerate(messages)],
        "max_tokens": TOKENS, **more}, status=status)


def said(reply):
    return [choice["message"]["content"] for choice in reply["choices"]]


def cached(reply):
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def requests():
    _, _, models = server.request("GET", "/v1/models")
    assert models["data"][0]["architecture"] == {
        "input_modalities": ["text", "image"],
        "output_modalities": ["text"]}, models
    first, second, none = (about(QUESTION, *names) for names in ("a", "b", ""))
    reply = ask([picture("a"), text(QUESTION)])
    assert said(reply) == [first] and cached(reply) == 0, reply
    assert reply["usage"]["prompt_tokens"] == 1 + 2 + EACH + 28 + 1, reply
    # The same picture is known again, another one is not.
    reply = ask([picture("a"), text(QUESTION)])
    assert said(reply) == [first] and cached(reply) == 44 - 16, reply
    reply = ask([picture("b"), text(QUESTION)])
    assert said(reply) == [second] and cached(reply) == 2, reply
    reply = ask(QUESTION)
    assert said(reply) == [none] and cached(reply) == 1, reply
    reply = ask([picture("b"), text(QUESTION)])
    assert said(reply) == [second] and cached(reply) == 44 - 16, reply
    # Several choices, parts in another order, and turns.
    assert said(ask([picture("a"), text(QUESTION)], n=3)) == [first] * 3
    wanted = generate("--prompt-ids", ids_of([QUESTION, "b.png", "or", "a.png"]),
                      "--image=b.png", "--image=a.png")
    reply = ask([text(QUESTION), picture("b"), text("or"), picture("a")])
    assert said(reply) == [wanted], (reply, wanted)
    wanted = generate("--prompt-ids", ids_of(["a.png", QUESTION], first,
                                             ["b.png", "and1this"]),
                      "--image=a.png", "--image=b.png")
    reply = ask([picture("a"), text(QUESTION)], first,
                [picture("b"), text("and1this")])
    assert said(reply) == [wanted], (reply, wanted)
    assert cached(reply) >= 44 - 16, reply
    # Parts without a picture are a text.
    assert said(ask([text(QUESTION[:9]), text(QUESTION[9:])])) == [none]


def together():
    """With and without pictures, more than there are slots."""
    wanted = {name: about(QUESTION, *name) for name in ("a", "b", "ab", "")}
    got = []

    def run(name):
        parts = [picture(one) for one in name] + [text(QUESTION)]
        got.append((name, said(ask(parts))[0]))
    names = ["a", "b", "", "ab", "b", "a", "", "ab"] * 2
    counts = ["attune_new_tokens_total", "attune_decode_steps_total"]
    before = [server.metric(name) for name in counts]
    threads = [threading.Thread(target=run, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == len(names)
    for name, answer in got:
        assert answer == wanted[name], (name, answer, wanted[name])
    made, steps = (server.metric(name) - was
                   for name, was in zip(counts, before))
    assert steps < made, (made, steps)  # some give a token to several texts


def refuse(content, *texts, role="user", code=None):
    reply = server.post("/v1/chat/completions", {
        "messages": [{"role": role, "content": content}]}, status=400)
    for words in texts:
        assert words in reply["error"]["message"], reply
    assert reply["error"]["param"] == "messages", reply
    assert reply["error"]["code"] == code, reply


def request_errors():
    def of(url):
        return [{"type": "image_url", "image_url": {"url": url}}]
    with open("a.png", "rb") as file:
        good = file.read()
    head = good[12:16] + struct.pack(">II", 1 << 13, (1 << 13) + 1) + good[24:29]
    large = good[:12] + head + struct.pack(">I", zlib.crc32(head)) + good[33:]
    for url in ("http://example.org/a.png", "https://example.org/a.png",
                "a.png", "/etc/passwd", "file:///etc/passwd", "",
                "data:text/plain;base64,AAAA", "data:image/png,AAAA",
                "data:image/png;base64"):
        refuse(of(url), "picture 1: expected \"data:image/png;base64,...\"",
               "no addresses are fetched and no files are read")
    refuse(of("data:image/png;base64,AA*A"), "digit 3 is none")
    refuse(of("data:image/png;base64,A=AA"), "digit 2 is none")
    refuse(of("data:image/png;base64,AAAAA"), "ends in the middle of a byte")
    refuse(of(url_of(b"GIF89a")), "picture 1: is a GIF file")
    refuse(of(url_of(good[:60])), "picture 1: is no whole PNG file")
    refuse(of(url_of(large)), "8192 x 8193 pixels; 67108864 in all")
    refuse([{"type": "image_url", "image_url": "x"}], "expected a part")
    refuse([picture("a")], "expected parts", role="assistant")
    refuse([{"type": "input_audio"}], "expected parts")
    refuse([picture("a")] * 11, "11 pictures of 132 tokens or more leave no room",
           code="context_length_exceeded")
    refuse([picture("a"), text("<|image_pad|>")],
           "2 image tokens (id 37) for 1 picture")
    # It goes on.
    assert said(ask([picture("a"), text(QUESTION)])) == [about(QUESTION, "a")]


serving.run([chats, chat_errors])
with serving.Server([sys.argv[1]], "--slots=3") as server:
    serving.run([requests, together, request_errors])
    server.stop()
