# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""chat-stop.py COMMAND...: interrupts `chat` while it computes a long prompt.

The model says what it is told; a step, of 512 tokens of a prompt or one of an
answer, takes 200 ms.
"""

import json
import re
import signal
import subprocess
import sys
import time

chat = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
chat.stdin.write(b"a\n")
chat.stdin.flush()
assert chat.stdout.readline() == b"a\n"
chat.stdin.write(b"$%" * 1500 + b"\n")
chat.stdin.flush()
time.sleep(0.5)  # of 1.2 s at least
chat.send_signal(signal.SIGINT)
chat.stdin.write(b"/save stopped.json\n")
chat.stdin.close()
notes = chat.stderr.read().decode()
assert chat.wait() == 0, notes
assert "(stopped)" in notes, notes
assert chat.stdout.read().strip() == b"", "nothing was to be said"
computed = re.findall(r"\((\d+) tokens computed", notes)
assert int(computed[1]) < 3000, notes
with open("stopped.json") as file:
    contents = [message["content"] for message in json.load(file)]
assert contents == ["a", "a"], contents
print("the prompt was stopped")
