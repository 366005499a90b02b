# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""client.py URL PROMPT: prints what a model writes, as it writes it."""

import json
import sys
import urllib.request

url, prompt = sys.argv[1:3]
request = urllib.request.Request(
    url + "/v1/completions",
    json.dumps({"prompt": prompt, "max_tokens": 60, "stream": True}).encode(),
    {"Content-Type": "application/json"})
with urllib.request.urlopen(request) as reply:
    print(prompt, end="", flush=True)
    for line in reply:
        event = line.decode().strip().removeprefix("data: ")
        if event and event != "[DONE]":
            print(json.loads(event)["choices"][0]["text"], end="", flush=True)
print()
