# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `serve` writes to a terminal: serve-load.py PROGRAM"""
import http.client
import json
import os
import pty
import re
import subprocess
import sys
import threading


def serve(program, *options, terminal=True):
    """All that it wrote while it answered a request of some seconds."""
    reader, writer = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen([program, "serve", "--port=0", *options],
                               stdout=subprocess.PIPE, stderr=writer, text=True)
    os.close(writer)
    written = []

    def read():
        try:
            while some := os.read(reader, 4096):
                written.append(some)
        except OSError:  # the terminal was closed
            pass

    thread = threading.Thread(target=read)
    thread.start()
    host, port = process.stdout.readline().strip()[len("http://"):].split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=100)
    connection.request("POST", "/v1/completions", json.dumps(
        {"prompt": "a", "max_tokens": 150, "ignore_eos": True}),
        {"Content-Type": "application/json"})
    assert connection.getresponse().status == 200
    connection.close()
    process.terminate()
    assert process.wait(timeout=100) == 0
    thread.join()
    os.close(reader)
    return b"".join(written).decode()


def on_terminal(program):
    text = serve(program)
    line = r"1 of 4 texts, 0 waiting, (\d+\.\d) tokens/s, caches \d+%"
    speeds = [float(found) for found in re.findall(line, text)]
    assert len(speeds) >= 2 and max(speeds) > 1, text
    # What is left once all lines that were erased are gone.
    shown = [part.split("\r\x1b[K")[-1].strip() for part in text.split("\n")]
    assert not any(re.search(line, part) for part in shown), text
    assert any("POST /v1/completions 200" in part for part in shown), text
    assert "tokens/s" not in serve(program, "--quiet"), "with --quiet"
    text = serve(program, "--message-format=json")
    assert "tokens/s" not in text, text
    print("ok terminal")


on_terminal(sys.argv[1])
written = serve(sys.argv[1], terminal=False)
assert "\x1b" not in written and "POST /v1/completions 200" in written, written
print("ok elsewhere")
