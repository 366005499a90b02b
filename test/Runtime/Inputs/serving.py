# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A server under test, and clients of it from Python's standard library."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time


class Server:
    """Runs `COMMAND serve --port=0 OPTIONS...` while it is entered."""

    def __init__(self, command, *options):
        self.command = [*command, "serve", "--port=0", *options]

    def __enter__(self):
        self.log = open(f"serve-{os.getpid()}.log", "w+")
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        url = self.process.stdout.readline().strip()
        if not url:
            self.process.wait()
            sys.exit("the server did not start: " + self.read_log())
        self.host, port = url[len("http://"):].rsplit(":", 1)
        self.port = int(port)
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def read_log(self):
        self.log.flush()
        with open(self.log.name) as log:
            return log.read()

    def stop(self):
        """Asks it to end and gives the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def connect(self):
        connection = http.client.HTTPConnection(self.host, self.port,
                                                timeout=600)
        return contextlib.closing(connection)

    def request(self, method, path, body=None, **headers):
        """Status, headers and body (JSON is read) of one request."""
        with self.connect() as connection:
            return ask(connection, method, path, body, **headers)

    def post(self, path, body, status=200):
        got, _, reply = self.request("POST", path, body)
        assert got == status, f"{path}: {got} {reply}"
        return reply

    def metric(self, name):
        _, _, text = self.request("GET", "/metrics")
        for line in text.splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"no metric {name} in\n{text}")

    def wait_for_metric(self, name, value):
        end = time.monotonic() + 10
        while self.metric(name) != value:
            assert time.monotonic() < end, f"{name} is not {value}"
            time.sleep(0.01)

    def stream(self, path, body, ended=True):
        """The events of a streamed reply, up to [DONE], which an error is not
        followed by."""
        with self.connect() as connection:
            connection.request("POST", path, json.dumps({**body,
                                                         "stream": True}),
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            assert reply.status == 200, reply.read()
            assert reply.getheader("Content-Type") == "text/event-stream"
            events = []
            for event in reply.read().decode().split("\n\n"):
                if event:
                    assert event.startswith("data: "), event
                    events.append(event[len("data: "):])
            assert (events[-1] == "[DONE]") == ended, events[-1]
            return [json.loads(event) for event in events
                    if event != "[DONE]"]

    def raw(self, data, half_close=False, pause=0):
        """What comes back for these bytes until the server closes."""
        with socket.create_connection((self.host, self.port), 20) as client:
            for part in data if isinstance(data, list) else [data]:
                client.sendall(part)
                time.sleep(pause)
            if half_close:
                client.shutdown(socket.SHUT_WR)
            reply = b""
            while True:
                try:
                    more = client.recv(65536)
                except ConnectionResetError:
                    more = b""
                if not more:
                    return reply.decode()
                reply += more


def ask(connection, method, path, body=None, **headers):
    if body is not None:
        headers.setdefault("Content_Type", "application/json")
        if not isinstance(body, (str, bytes)):
            body = json.dumps(body)
    connection.request(method, path, body,
                       {name.replace("_", "-"): value
                        for name, value in headers.items()})
    reply = connection.getresponse()
    data = reply.read()
    if reply.getheader("Content-Type") == "application/json":
        data = json.loads(data)
    else:
        data = data.decode()
    return reply.status, reply.headers, data


def run(tests):
    """Runs functions and names each that went well."""
    for test in tests:
        test()
        print("ok", test.__name__, flush=True)
