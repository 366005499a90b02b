# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-adapters.py PRODUCT: a storyteller with the adapters sea and fox."""

import json
import subprocess
import sys
import threading

import serving

# Long enough that another text's beginning would be used again.
PROMPT = ("Once upon a time there was a little fox who lived in a small house "
          "by the lake and did not want to go to the sea")


def generate(*options):
    run = subprocess.run([sys.argv[1], "generate", "--prompt", PROMPT,
                          "--max-new-tokens=40", "--ignore-eos",
                          "--format=json", *options],
                         capture_output=True, text=True, check=True)
    return json.loads(run.stdout)["text"]


def lists():
    _, _, reply = server.request("GET", "/v1/models")
    base, *others = reply["data"]
    assert [(m["id"], m["parent"]) for m in others] == [
        ("sea", base["id"]), ("fox", base["id"])], reply
    assert "parent" not in base
    status, _, reply = server.request("GET", "/v1/models/fox")
    assert status == 200 and reply["id"] == "fox", reply
    return base["id"]


def texts(base):
    wanted = {base: generate(), "sea": generate("--adapter=sea"),
              "fox": generate("--adapter=fox")}
    assert len(set(wanted.values())) == 3, wanted
    got = []

    def ask(name):
        reply = server.post("/v1/completions", {
            "model": name, "prompt": PROMPT, "max_tokens": 40,
            "ignore_eos": True})
        got.append((reply["model"], reply["choices"][0]["text"]))

    # Together, and again, when all slots hold the same beginning of others.
    for names in ([base, "sea", "fox"], ["fox", "fox", base, "sea"]):
        threads = [threading.Thread(target=ask, args=[name]) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(got) == 7, got
    for name, text in got:
        assert text == wanted[name], (name, text, wanted[name])


def unknown():
    reply = server.post("/v1/completions", {"model": "owl", "prompt": PROMPT},
                        status=404)
    assert reply["error"]["code"] == "model_not_found", reply
    assert reply["error"]["type"] == "invalid_request_error", reply
    assert "it has sea, fox" in reply["error"]["message"], reply
    reply = server.post("/v1/completions", {"prompt": PROMPT, "max_tokens": 4})
    assert reply["model"] == base, reply


with serving.Server([sys.argv[1]], "--slots=3") as server:
    base = lists()
    print("ok lists")
    texts(base)
    print("ok texts")
    unknown()
    print("ok unknown")
    server.stop()
