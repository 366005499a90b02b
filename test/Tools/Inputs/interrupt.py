# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sends signals to a command that writes, and says what it leaves behind.

  interrupt.py FOLDER COMMAND ARGUMENT...

The command gets `-o FOLDER/out` and FOLDER for its temporary files. Each signal
comes when the linker's folder is there, which is when there is most to remove.
"""
import os
import signal
import subprocess
import sys
import time

folder, command = sys.argv[1], sys.argv[2:]
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    process = subprocess.Popen(
        command + ["-o", os.path.join(folder, "out")],
        env={**os.environ, "TMPDIR": folder}, stderr=subprocess.DEVNULL,
        # Ctrl-C is ignored where a shell runs things in the background.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    while process.poll() is None and not any(
            name.startswith("attune-link") for name in os.listdir(folder)):
        time.sleep(0.002)
    process.send_signal(number)
    code = process.wait()
    left = os.listdir(folder)
    print(f"{number.name}:",
          "ended by it," if code == -number else f"exit code {code},",
          "left " + (" ".join(left) or "nothing"))
    for name in left:
        subprocess.run(["rm", "-rf", os.path.join(folder, name)], check=True)
