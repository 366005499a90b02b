"""Runs a command with a terminal for stderr and shows what came there.

  terminal.py COMMAND ARGUMENT...
"""
import os
import pty
import subprocess
import sys

ours, theirs = pty.openpty()
process = subprocess.Popen(sys.argv[1:], stderr=theirs,
                           stdout=subprocess.DEVNULL)
os.close(theirs)
shown = b""
while True:
    try:
        part = os.read(ours, 4096)
    except OSError:  # the other side is closed
        break
    if not part:
        break
    shown += part
print(shown.decode().replace("\r", "<CR>\n").replace("\x1b[K", "<CLEAR>"))
sys.exit(process.wait())
