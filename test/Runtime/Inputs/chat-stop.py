# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""chat-stop.py COMMAND...: interrupts `chat` while it computes a long prompt.

A part of the prompt, 512 tokens, takes 400 ms.
"""

import json
import re
import signal
import subprocess
import sys
import time

chat = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
chat.stdin.write(b"$%" * 1500 + b"\n")
chat.stdin.flush()
# An interrupt before the prompt is read would end the program.
while True:
    with open(f"/proc/{chat.pid}/status") as status:
        caught = re.search(r"SigCgt:\s*(\w+)", status.read()).group(1)
    if int(caught, 16) >> (signal.SIGINT - 1) & 1:
        break
    time.sleep(0.01)
time.sleep(0.1)
chat.send_signal(signal.SIGINT)
chat.stdin.write(b"/save stopped.json\n")
chat.stdin.close()
notes = chat.stderr.read().decode()
assert chat.wait() == 0, notes
assert "(stopped)" in notes, notes
assert chat.stdout.read().strip() == b"", "nothing was to be said"
with open("stopped.json") as file:
    assert json.load(file) == [], "the prompt was to be forgotten"
print("stopped behind", re.search(r"\((\d+) tokens", notes).group(1), "tokens")
