"""Kills a program that waits for input as a bug would, and shows its stderr.

Usage: crash.py PROGRAM ARGUMENT...
"""

import signal
import subprocess
import sys
import time

process = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
# The handlers are installed once the program blocks on its input.
time.sleep(1)
process.send_signal(signal.SIGSEGV)
print(process.communicate()[1].decode(errors="replace"))
print("died of", signal.Signals(-process.returncode).name)
