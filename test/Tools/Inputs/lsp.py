"""A language client: sends requests, prints each answer as one line of JSON.

Usage: lsp.py SERVER FILE [METHOD=]LINE:COLUMN...

Asks for METHOD (hover, completion, definition) at each place, counted from 0.
"""

import json
import subprocess
import sys


def send(server, message):
    body = json.dumps(dict(message, jsonrpc="2.0")).encode()
    server.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    server.stdin.flush()


def receive(server):
    length = 0
    while True:
        line = server.stdout.readline()
        if not line:
            sys.exit("the server closed the connection")
        if line.strip() == b"":
            return json.loads(server.stdout.read(length))
        name, value = line.split(b":")
        if name.lower() == b"content-length":
            length = int(value)


def request(server, number, method, params):
    """Sends a request and prints everything up to its answer."""
    send(server, {"id": number, "method": method, "params": params})
    while True:
        message = receive(server)
        print(json.dumps(message, sort_keys=True))
        if message.get("id") == number:
            return


def main():
    path, source, places = sys.argv[1], sys.argv[2], sys.argv[3:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    uri = "file:///attune/module.mlir"
    server = subprocess.Popen([path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    request(server, 0, "initialize",
            {"processId": None, "rootUri": None, "capabilities": {}})
    send(server, {"method": "initialized", "params": {}})
    send(server, {"method": "textDocument/didOpen", "params": {
        "textDocument": {"uri": uri, "languageId": "mlir", "version": 1,
                         "text": text}}})
    for number, place in enumerate(places, 1):
        method, place = place.split("=") if "=" in place else ("hover", place)
        line, column = map(int, place.split(":"))
        request(server, number, "textDocument/" + method, {
            "textDocument": {"uri": uri},
            "position": {"line": line, "character": column}})
    request(server, 99, "shutdown", None)
    send(server, {"method": "exit", "params": None})
    print("exit code", server.wait())


if __name__ == "__main__":
    main()
