# Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""serve-http.py PRODUCT SLOW EMBEDDING PARROT: how the server speaks HTTP.

The model is the hand-written one with the storyteller's tokenizer; a step of
SLOW takes 20 ms, EMBEDDING gives hidden states, and PARROT repeats what is said.
"""

import base64
import http.client
import json
import os
import resource
import socket
import struct
import sys
import time

import serving

fast, slow, embedding, parrot = [[path] for path in sys.argv[1:5]]
ENDLESS = {"prompt": [1, 2], "ignore_eos": True}
HOST = b"Host: localhost\r\n"


def refused(reply, status):
    """A reply that is an error in OpenAI's form; its message."""
    head, body = reply.split("\r\n\r\n", 1)
    assert head.startswith(f"HTTP/1.1 {status} "), reply
    assert "Connection: close" in head, reply
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}, error
    return error["message"]


def malformed_requests():
    with serving.Server(fast, "--max-body=64K") as server:
        for data, status in [
            (b"nonsense\r\n", 400),
            (b"GET /health HTTP/2.0\r\n", 505),
            (b"GET health HTTP/1.1\r\n", 400),
            (b"GET /health HTTP/1.1\n", 400),
            (b"GET /health HTTP/1.1\r\n\r\n", 400),  # no host
            (b"GET /health HTTP/1.1\r\n" + 2 * HOST, 400),
            (b"GET /health HTTP/1.1\r\nBad header\r\n", 400),
            (b"GET /health HTTP/1.1\r\n" + HOST + b" folded\r\n", 400),
            (b"GET /health HTTP/1.1\r\nX: a\x01b\r\n", 400),
            (b"GET /" + b"x" * 20000 + b" HTTP/1.1\r\n", 431),
            (b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 101, 431),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Content-Length: 99999999999999999999\r\n\r\n", 413),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Content-Length: -1\r\n\r\n", 400),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n"
             b"Transfer-Encoding: chunked\r\n\r\n", 400),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Transfer-Encoding: gzip\r\n\r\n", 501),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n", 413),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", 400),
            (b"POST /tokenize HTTP/1.1\r\n" + HOST +
             b"Expect: wonders\r\nContent-Length: 2\r\n\r\n", 417),
        ]:
            refused(server.raw(data), status)
        assert server.request("GET", "/health")[0] == 200


def refused_requests():
    with serving.Server(fast) as server:
        for method, path, body, headers, status in [
            ("GET", "/nowhere", None, {}, 404),
            ("GET", "/v1/completions", None, {}, 405),
            ("POST", "/health", "{}", {}, 405),
            ("OPTIONS", "/v1/completions", None, {}, 405),
            ("GET", "/health", None, {"Host": "evil.example"}, 403),
            ("GET", "/health", None, {"Host": "127.evil.example"}, 403),
            ("GET", "/health", None, {"Host": "localhost.evil.example"}, 403),
            ("POST", "/tokenize", "{}", {"Content_Type": "text/plain"}, 415),
            ("POST", "/tokenize", "{}", {"Content_Type": "application/jsonx"},
             415),
            ("POST", "/tokenize", "{}", {"Content_Encoding": "gzip"}, 415),
            ("GET", "http://evil.example/health", None, {}, 403),
            ("POST", "/tokenize", "{", {}, 400),
            ("POST", "/tokenize", "[]", {}, 400),
            ("POST", "/tokenize", "[" * 100000, {}, 400),
            ("POST", "/tokenize", b'{"content": "\xff"}', {}, 400),
        ]:
            got, _, reply = server.request(method, path, body, **headers)
            assert got == status, (method, path, got, reply)
            assert reply["error"]["message"], reply
        for path, body, parameter in [
            ("/v1/completions", {}, "prompt"),
            ("/v1/completions", {"prompt": 5}, "prompt"),
            ("/v1/completions", {"prompt": [1, 5000]}, "prompt"),
            ("/v1/completions", {"prompt": ["a"] * 65}, "prompt"),
            ("/v1/completions", {"prompt": []}, "prompt"),
            ("/v1/completions", {"prompt": "a", "max_tokens": 1,
                                 "min_tokens": 2}, "min_tokens"),
            ("/v1/completions", {"prompt": [1] * 50}, "prompt"),
            ("/v1/chat/completions", {"messages": [], "max_tokens": 0},
             "max_tokens"),
            ("/v1/completions", {"prompt": "a", "max_tokens": 1.5},
             "max_tokens"),
            ("/v1/completions", {"prompt": "a", "temperature": -1},
             "temperature"),
            ("/v1/completions", {"prompt": "a", "top_p": "x"}, "top_p"),
            ("/v1/completions", {"prompt": "a", "n": 17}, "n"),
            ("/v1/completions", {"prompt": "a", "best_of": 2}, "best_of"),
            ("/v1/completions", {"prompt": "a", "stop": [1]}, "stop"),
            ("/v1/completions", {"prompt": "a", "stop": ""}, "stop"),
            ("/v1/completions", {"prompt": "a", "suffix": "b"}, "suffix"),
            ("/v1/completions", {"prompt": "a", "bad_words": ["b"]},
             "bad_words"),
            ("/v1/completions", {"prompt": "a", "tools": [{}]}, "tools"),
            ("/v1/completions", {"prompt": "a", "stop_token_ids": [5000]},
             "stop_token_ids"),
            ("/v1/completions", {"prompt": "a", "guided_json": 5},
             "guided_json"),
            ("/v1/completions", {"prompt": "a", "guided_choice": []},
             "guided_choice"),
            ("/v1/completions", {"prompt": "a", "guided_choice": ["a"],
                                 "guided_regex": "b"}, "guided_choice"),
            ("/v1/completions", {"prompt": "a", "structured_outputs": {
                "structural_tag": "x"}}, "structured_outputs"),
            ("/v1/completions", {"prompt": "a", "logit_bias": {"x": 1}},
             "logit_bias"),
            ("/v1/completions", {"prompt": "a", "logit_bias": {"2000": 1}},
             "logit_bias"),
            ("/v1/completions", {"prompt": "a", "echo": True,
                                 "logprobs": 21}, "logprobs"),
            ("/v1/completions", {"prompt": "a", "stream_options": 1},
             "stream_options"),
            ("/v1/chat/completions", {"messages": []}, "messages"),
            ("/v1/chat/completions", {}, "messages"),
            ("/detokenize", {"tokens": [-1]}, "tokens"),
            ("/detokenize", {"tokens": "x"}, "tokens"),
        ]:
            reply = server.post(path, body, 400)
            assert reply["error"]["type"] == "invalid_request_error", reply
            assert reply["error"]["param"] == parameter, (body, reply)
        for more, wanted in [
            ({"max_tokens": 8.5}, "a whole number of 0 or more, found 8.5"),
            ({"max_tokens": 1e300}, "a whole number of 0 or more, found"),
            ({"typical_p": 0.5}, "'typical_p' is not supported by this "
             "server; the only value it takes is 1"),
            ({"seed": 1 << 63}, "a whole number of 64 bits, found 9.223372037e+18"),
            ({"n": 2, "best_of": 3}, "as many as 'n', 2, since all texts"),
        ]:
            error = server.post("/v1/completions", {"prompt": "a", **more},
                                400)["error"]
            assert wanted in error["message"], error
        # Whole numbers as some languages write them; what asks for nothing.
        for more in ({"max_tokens": 2.0, "prompt": [1.0, 2.0]},
                     {"max_tokens": 2, "typical_p": 1, "tools": [],
                      "suffix": None, "bad_words": [], "mirostat": 0.0}):
            reply = server.post("/v1/completions", {
                "prompt": "a", "ignore_eos": True, **more})
            assert reply["usage"]["completion_tokens"] == 2, reply
        # A name that nobody knows is in the log, once; no other text is.
        for _ in range(3):
            server.post("/v1/completions", {
                "prompt": "a", "max_token": 3, "max_tokens": 1,
                "tell nobody": 1, "x" * 65: 1})
        log = server.read_log()
        assert log.count("has a member 'max_token', which this server does "
                         "not know") == 1, log
        assert "nobody" not in log and "xxx" not in log, log
        # Names of this machine, and the type, as others may write them.
        for host in "LOCALHOST:80", "localhost.", "127.0.0.2", "[::1]:80":
            assert server.request("GET", "/health", Host=host)[0] == 200, host
        for kind in "Application/JSON", "application/json ; charset=utf-8":
            assert server.request("POST", "/tokenize", '{"content": "a"}',
                                  Content_Type=kind)[0] == 200, kind
        error = server.post("/v1/embeddings", {"input": "a"}, 400)["error"]
        assert "cannot embed" in error["message"], error


def keys_and_origins():
    long = "k" * 5000
    with open("keys", "w") as keys:
        keys.write(f"second\n{long}\n")
    with serving.Server(fast, "--api-key=first", "--api-key-file=keys",
                        "--allow-origin=https://page.example") as server:
        for key, status in [(None, 401), ("", 401), ("firs", 401),
                            ("first2", 401), ("first", 200), ("second", 200),
                            (long, 200), ("k" * 4095, 401), ("k" * 905, 401)]:
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            got, all_headers, _ = server.request("GET", "/v1/models",
                                                 **headers)
            assert got == status, (key, got)
            assert all_headers["Access-Control-Allow-Origin"] == \
                "https://page.example"
        assert server.request("GET", "/health")[0] == 200
        status, headers, _ = server.request(
            "OPTIONS", "/v1/completions", Origin="https://page.example")
        assert status == 204 and "POST" in headers[
            "Access-Control-Allow-Methods"]
    with serving.Server(fast) as server:
        _, headers, _ = server.request("GET", "/health")
        assert "Access-Control-Allow-Origin" not in headers


def connections():
    with serving.Server(fast) as server:
        with server.connect() as kept:  # one connection, several requests
            for _ in range(3):
                assert serving.ask(kept, "GET", "/health")[0] == 200
                assert serving.ask(kept, "POST", "/v1/completions",
                                   ENDLESS)[0] == 200
        body = json.dumps({"content": "Once"}).encode()
        post = (b"POST /tokenize HTTP/1.1\r\n" + HOST +
                b"Content-Type: application/json\r\n")
        whole = post + b"Content-Length: %d\r\n\r\n" % len(body) + body
        get = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
        last = b"GET /health HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
        # Requests that are sent ahead are answered one after the other.
        reply = server.raw(get + whole + whole + get + last)
        assert reply.count("HTTP/1.1 200 OK") == 5, reply
        assert reply.count('"count":1}') == 2, reply
        # Byte by byte.
        reply = server.raw([bytes([byte]) for byte in last])
        assert reply.count("HTTP/1.1 200 OK") == 1, reply
        # In chunks, with an extension and a trailer; told to go on.
        chunks = b"3;x=y\r\n%b\r\n%x\r\n%b\r\n0\r\nT: u\r\n\r\n" % (
            body[:3], len(body) - 3, body[3:])
        reply = server.raw(
            [post + b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
             b"Connection: close\r\n\r\n", chunks], pause=0.05)
        assert reply.startswith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"), \
            reply
        # HTTP/1.0 ends with its connection; so does a stream of it.
        reply = server.raw(b"GET /health HTTP/1.0\r\n\r\n")
        assert reply.endswith('{"status":"ok"}'), reply
        data = json.dumps({**ENDLESS, "max_tokens": 2,
                           "stream": True}).encode()
        reply = server.raw(b"POST /v1/completions HTTP/1.0\r\n"
                           b"Content-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(data) + data)
        assert "chunked" not in reply and reply.endswith("[DONE]\n\n"), reply
        # A client that sends no more still gets its answer.
        reply = server.raw(get, half_close=True)
        assert reply.startswith("HTTP/1.1 200 OK"), reply
        reply = server.raw(get[:20], half_close=True)
        assert "ends before it is whole" in refused(reply, 400), reply
        head = server.raw(b"HEAD /health HTTP/1.0\r\n\r\n")
        assert head.endswith("\r\n\r\n"), head


def addresses():
    """A name's addresses are all listened on: localhost has two."""
    with serving.Server(fast, "--host=localhost") as server:
        server.host = "127.0.0.1"
        assert server.request("GET", "/health")[0] == 200
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
            both = len(socket.getaddrinfo("localhost", 0,
                                          type=socket.SOCK_STREAM)) > 1
        except OSError:
            both = False
        if both:
            server.host = "::1"
            assert server.request("GET", "/health")[0] == 200


def descriptors():
    """Without descriptors clients wait, and are served when there are some."""
    with serving.Server(fast) as server:
        process = server.process.pid
        limits = resource.prlimit(process, resource.RLIMIT_NOFILE)
        used = len(os.listdir(f"/proc/{process}/fd"))
        resource.prlimit(process, resource.RLIMIT_NOFILE, (used, limits[1]))
        with socket.create_connection((server.host, server.port), 20) as client:
            client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            client.settimeout(0.2)
            try:
                raise AssertionError(client.recv(1))
            except TimeoutError:
                pass
            resource.prlimit(process, resource.RLIMIT_NOFILE, limits)
            client.settimeout(20)
            assert client.recv(9) == b"HTTP/1.1 ", "no answer"


def slow_clients():
    with serving.Server(fast, "--read-timeout=0.3") as server:
        start = time.monotonic()
        # A byte now and then does not help.
        reply = server.raw([b"GET /health HT"] + [b"X"] * 4, pause=0.1)
        assert "in time" in refused(reply, 408), reply
        with socket.create_connection((server.host, server.port), 20) as idle:
            assert idle.recv(1) == b""  # closed without a word
        assert time.monotonic() - start < 5


def long_replies():
    """A client gets as much as it asked for, and reads as fast as it can."""
    with serving.Server(fast) as server:
        tokens = server.post("/tokenize", {"content": "$%" * 400000,
                                           "with_pieces": True})["tokens"]
        assert len(tokens) == 800000, len(tokens)
        assert len(json.dumps(tokens)) > 17 << 20


def streamed_logprobs():
    """Those of tokens without a text, too."""
    with serving.Server(fast) as server:
        body = {"prompt": [0], "ignore_eos": True, "logprobs": 0,
                "max_tokens": 3, "logit_bias": {"1023": 100}}
        choice = server.post("/v1/completions", body)["choices"][0]
        assert choice["text"] == "", choice
        assert len(choice["logprobs"]["tokens"]) == 3, choice
        parts = [event["choices"][0]["logprobs"]
                 for event in server.stream("/v1/completions", body)]
        whole = [value for part in parts if part for value in part["tokens"]]
        assert whole == choice["logprobs"]["tokens"], parts


def begin(server, streams=False, **more):
    """A connection with a request whose reply has not come yet."""
    client = http.client.HTTPConnection(server.host, server.port, timeout=20)
    client.request("POST", "/v1/completions",
                   json.dumps({**ENDLESS, **more, "stream": streams}),
                   {"Content-Type": "application/json"})
    return client


def full_server():
    with serving.Server(fast, "--connections=3") as server:
        held = [socket.create_connection((server.host, server.port), 20)
                for _ in range(3)]
        assert server.request("GET", "/health")[0] == 200
        for client in held:
            client.close()
    with serving.Server(slow, "--slots=1", "--queue=1") as server:
        first = begin(server)
        server.wait_for_metric("attune_sequences_running", 1)
        second = begin(server)
        server.wait_for_metric("attune_sequences_waiting", 1)
        status, headers, reply = server.request("POST", "/v1/completions",
                                                ENDLESS)
        assert (status, headers["Retry-After"]) == (503, "1"), reply
        first.close()
        second.close()


def hang_up():
    with serving.Server(slow, "--slots=1") as server:
        for streams in (False, True):
            client = begin(server, streams)
            server.wait_for_metric("attune_sequences_running", 1)
            other = begin(server, streams)
            server.wait_for_metric("attune_sequences_waiting", 1)
            other.close()  # gives up while it waits
            server.wait_for_metric("attune_sequences_waiting", 0)
            client.close()
            server.wait_for_metric("attune_sequences_running", 0)
        # Each would have gone on to 4,000 tokens.
        assert server.metric("attune_new_tokens_total") < 2000
        log = server.read_log()
        assert log.count("POST /v1/completions 499") == 4, log


def time_limit():
    with serving.Server(slow, "--timeout=0.2") as server:
        reply = server.post("/v1/completions", ENDLESS, 503)
        assert reply["error"]["code"] == "timeout", reply
        server.wait_for_metric("attune_sequences_running", 0)


def stopping():
    with serving.Server(slow, "--slots=1") as server:
        first = begin(server, max_tokens=80)
        server.wait_for_metric("attune_sequences_running", 1)
        second = begin(server, max_tokens=5)
        server.wait_for_metric("attune_sequences_waiting", 1)
        with server.connect() as idle:
            assert serving.ask(idle, "GET", "/health")[0] == 200
            assert server.stop() == 0
        # Both were answered, the one that waited, too.
        for client, count in (first, 80), (second, 5):
            reply = client.getresponse()
            assert reply.status == 200
            assert reply.getheader("Connection") == "close"
            usage = json.loads(reply.read())["usage"]
            assert usage["completion_tokens"] == count, usage
        assert "stopping: 2 requests" in server.read_log()


def json_log():
    with serving.Server(fast, "--message-format=json") as server:
        server.post("/v1/completions", {"prompt": "$\"#", "max_tokens": 3})
        assert server.request("GET", "/nowhere")[0] == 404
        assert server.stop() == 0
        start, alone, done, lost, end = map(json.loads,
                                            server.read_log().splitlines())
    assert start["severity"] == end["severity"] == "note", (start, end)
    assert start["message"].startswith("serving "), start
    assert alone["message"] == (
        "a step decodes one text, not all at once, because it was compiled "
        "without the step for several, which takes a tokenizer"), alone
    assert end["message"].startswith("stopping: 0 requests"), end
    assert done.pop("seconds") >= 0 and done.pop("time").endswith("Z"), done
    assert done == {"method": "POST", "path": "/v1/completions", "status": 200,
                    "prompt_tokens": 3, "cached_tokens": 0, "new_tokens": 3,
                    "finish_reason": "length"}, done
    assert lost["method"] == "GET" and lost["status"] == 404, lost


def embeddings():
    with serving.Server(embedding) as server:
        # The vector of token n is 1 at n + 1; '$"#' are the tokens 3, 1, 2.
        def vector(*places):
            return [places.count(i) / len(places) for i in range(16)]

        for given, wanted in [('$"#', [vector(2, 3, 4)]),
                              ([3, 1], [vector(2, 4)]),
                              (["$", '"'], [vector(4), vector(2)]),
                              ([[2], [3, 3]], [vector(3), vector(4)])]:
            reply = server.post("/v1/embeddings", {"input": given})
            for i, (item, values) in enumerate(zip(reply["data"], wanted,
                                                   strict=True)):
                assert item["index"] == i and len(item["embedding"]) == 16
                assert all(abs(a - b) < 1e-6 for a, b in
                           zip(item["embedding"], values)), (given, reply)
            coded = server.post("/v1/embeddings", {
                "input": given, "encoding_format": "base64"})
            for item, other in zip(coded["data"], reply["data"]):
                assert list(struct.unpack("<16f", base64.b64decode(
                    item["embedding"]))) == [
                        struct.unpack("f", struct.pack("f", value))[0]
                        for value in other["embedding"]]
        assert reply["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
        # A shorter vector is the beginning of the whole one.
        part = server.post("/v1/embeddings", {"input": [3, 1], "dimensions": 5})
        assert part["data"][0]["embedding"] == [0, 0, 0.5, 0, 0.5], part
        for body, parameter in [({}, "input"), ({"input": ""}, "input"),
                                ({"input": [1 << 40]}, "input"),
                                ({"input": 5}, "input"),
                                ({"input": "a", "dimensions": 17},
                                 "dimensions"),
                                ({"input": "a", "prompt_name": "query"},
                                 "prompt_name"),
                                ({"input": "a", "encoding_format": "x"},
                                 "encoding_format")]:
            error = server.post("/v1/embeddings", body, 400)["error"]
            assert error["param"] == parameter, (body, error)
        # Of a text far beyond the context of 40, a beginning is cut.
        before = server.metric("attune_tokenized_bytes_total")
        error = server.post("/v1/embeddings", {"input": "$" * 1000000},
                            400)["error"]
        assert "more than 40 tokens" in error["message"], error
        assert server.metric("attune_tokenized_bytes_total") - before < 5000


def tools():
    with serving.Server(parrot, "--chat-template=tools.jinja") as server:
        tool = {"type": "function", "function": {"name": "add"}}
        text = 'Sum: <tool_call>{"name": "add", "arguments": {"x": [1, 2]}}'
        body = {"messages": [{"role": "user", "content": text}],
                "tools": [tool]}

        def first(**more):
            reply = server.post("/v1/chat/completions", {**body, **more})
            return reply["choices"][0]

        choice = first()
        message = choice["message"]
        assert message["content"] == "Sum: ", choice
        [call] = message["tool_calls"]
        assert call["type"] == "function" and call["id"], call
        assert call["function"] == {"name": "add",
                                    "arguments": '{"x":[1,2]}'}, call
        assert choice["finish_reason"] == "tool_calls", choice
        deltas = [event["choices"][0] for event in
                  server.stream("/v1/chat/completions", body)]
        assert "".join(choice["delta"].get("content", "")
                       for choice in deltas) == "Sum: ", deltas
        [streamed] = deltas[-2]["delta"]["tool_calls"]
        assert streamed["index"] == 0, deltas
        assert streamed["function"] == call["function"], deltas
        assert deltas[-1]["finish_reason"] == "tool_calls", deltas
        # Without tools it is a text like others.
        for choice in first(tools=None), first(tool_choice="none"):
            assert choice["message"]["content"] == text, choice
            assert choice["finish_reason"] == "stop", choice
        # A call that is asked for has the form of one, whatever the model says.
        body["tools"].append({"type": "function", "function": {
            "name": "weigh", "parameters": {
                "type": "object", "properties": {"kg": {"type": "integer"}},
                "required": ["kg"], "additionalProperties": False}}})
        call = '{"name": "weigh", "arguments": {"kg": 12}}'
        asked = {"messages": [{"role": "user", "content": call}],
                 "max_tokens": 80}
        for tool_choice in "required", {"type": "function",
                                        "function": {"name": "weigh"}}:
            choice = first(tool_choice=tool_choice, **asked)
            assert choice["message"]["content"] is None, choice
            [made] = choice["message"]["tool_calls"]
            assert made["function"]["name"] == "weigh", choice
            assert set(json.loads(made["function"]["arguments"])) == {"kg"}
        choice = first(tool_choice={"type": "function", "function": {
            "name": "add"}}, **asked)
        if choice["finish_reason"] == "tool_calls":
            [made] = choice["message"]["tool_calls"]
            assert made["function"]["name"] == "add", choice
        # What its parameters refer to is within them, whichever tool it is;
        # data that looks like a reference is data.
        body["tools"].append({"type": "function", "function": {
            "name": "route", "parameters": {
                "type": "object", "properties": {
                    "to": {"$ref": "#/$defs/place"},
                    "$ref": {"const": {"$ref": "#"}}},
                "required": ["to", "$ref"], "additionalProperties": False,
                "$defs": {"place": {
                    "type": "object", "properties": {
                        "x": {"type": "integer"},
                        "via": {"anyOf": [{"$ref": "#/$defs/place"},
                                          {"type": "null"}]}},
                    "required": ["x", "via"],
                    "additionalProperties": False}}}}})
        arguments = {"to": {"x": 1, "via": {"x": 2, "via": None}},
                     "$ref": {"$ref": "#"}}
        call = json.dumps({"name": "route", "arguments": arguments})
        for tool_choice in "required", {"type": "function",
                                        "function": {"name": "route"}}:
            choice = first(tool_choice=tool_choice, max_tokens=150, messages=[
                {"role": "user", "content": call}])
            [made] = choice["message"]["tool_calls"]
            assert json.loads(made["function"]["arguments"]) == arguments, choice
        body["tools"].pop()

        def allow(mode, *names):
            return {"type": "allowed_tools", "allowed_tools": {
                "mode": mode, "tools": [{"type": "function", "function": {
                    "name": name}} for name in names]}}

        # Of the tools that are allowed, one must be called, or may be.
        call = '{"name": "weigh", "arguments": {"kg": 12}}'
        asked = {"messages": [{"role": "user", "content": call}],
                 "max_tokens": 80}
        choice = first(tool_choice=allow("required", "weigh"), **asked)
        [made] = choice["message"]["tool_calls"]
        assert made["function"]["name"] == "weigh", choice
        choice = first(tool_choice=allow("auto", "weigh"), messages=[
            {"role": "user", "content": "None."}])
        assert choice["message"]["content"] == "None.", choice
        choice = first(tool_choice=allow("required", "add"), **asked)
        if choice["finish_reason"] == "tool_calls":
            [made] = choice["message"]["tool_calls"]
            assert made["function"]["name"] == "add", choice
        # Tools are functions with names.
        for tool in ({"type": "custom", "custom": {"name": "a"}}, 5, {},
                     {"type": "function"}, {"type": "function", "function": {}},
                     {"type": "function", "function": {"name": ""}},
                     {"type": 3, "function": {"name": "a"}}):
            error = server.post("/v1/chat/completions", {
                **body, "tools": [*body["tools"], tool]}, 400)["error"]
            assert error["param"] == "tools", (tool, error)
            assert "tools[2]" in error["message"], (tool, error)
        for wrong in ({"tool_choice": "always"},
                      {"tool_choice": allow("required", "sing")},
                      {"tool_choice": allow("auto", "add", "sing")},
                      {"tool_choice": allow("auto")},
                      {"tool_choice": allow("never", "add")},
                      {"tool_choice": {"type": "allowed_tools"}},
                      {"tool_choice": allow("auto", "add"), "tools": []},
                      {"tool_choice": {"type": "function", "function": {
                          "name": "sing"}}},
                      {"tool_choice": "required", "response_format": {
                          "type": "json_object"}},
                      {"tool_choice": "required", "tools": []}):
            error = server.post("/v1/chat/completions", {**body, **wrong},
                                400)["error"]
            assert error["param"] == "tool_choice", (wrong, error)
        body["tools"].pop()
        [call] = message["tool_calls"]
        # What was called, and what came out, go back as messages: the template
        # sees arguments as an object.
        reply = first(messages=[
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "3"}])
        # Mistral's template takes no other ids.
        assert len(call["id"]) == 9 and call["id"].isalnum(), call
        assert reply["message"]["content"] == "x=[1, 2] 3", reply


def messages_of_templates():
    # This one looks into contents, and puts arguments behind a text.
    with serving.Server(parrot, "--chat-template=texts.jinja") as server:
        call = {"id": "a", "type": "function", "function": {
            "name": "add", "arguments": '{"x": 1}'}}
        for message in {"content": None}, {}:
            reply = server.post("/v1/chat/completions", {"messages": [
                {"role": "assistant", "tool_calls": [call], **message}]})
            text = reply["choices"][0]["message"]["content"]
            assert text == 'add {"x": 1}', text
    # This one reads a content part by part.
    with serving.Server(parrot, "--chat-template=parts.jinja") as server:
        parts = [{"type": "text", "text": text} for text in ("A ", "B")]
        reply = server.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": parts}]})
        assert reply["choices"][0]["message"]["content"] == "AB", reply


def forms():
    """The parrot says what it is told as far as the form allows it."""
    with serving.Server(parrot, "--chat-template=tools.jinja") as server:
        def say(text, response_format, **more):
            reply = server.post("/v1/chat/completions", {
                "messages": [{"role": "user", "content": text}],
                "response_format": response_format, **more})
            return reply["choices"][0]

        person = {"type": "json_schema", "json_schema": {
            "name": "person", "schema": {
                "type": "object", "required": ["name", "age"],
                "properties": {"name": {"type": "string"},
                               "age": {"type": "integer"}}}}}
        text = '{"name": "Wren", "age": 7}'
        for form in (person, {"type": "json_object"}, {"type": "text"},
                     {"type": "regex", "pattern": r"\{.*\}"},
                     {"type": "grammar", "grammar":
                      'root ::= "{" [a-zA-Z0-9" :,]* "}"'}):
            choice = say(text, form)
            assert choice["message"]["content"] == text, (form, choice)
            assert choice["finish_reason"] == "stop", choice
        # It says something else, and writes JSON all the same.
        for talk in ("Hello", '{"name": 5}', '{"name": "a", "other": 1}'):
            choice = say(talk, person, max_tokens=3000)
            if choice["finish_reason"] == "stop":
                value = json.loads(choice["message"]["content"])
                assert set(value) == {"name", "age"}, value
                assert isinstance(value["age"], int), value
        choice = say('"red"', {"type": "json_schema", "json_schema": {"schema": {
            "type": "string", "format": "color"}}})
        assert choice["message"]["content"] == '"red"', choice
        choice = say("Hello", {"type": "regex", "pattern": "(yes|no)"})
        note = ('note: the schema\'s format "color" at "/format" is not known '
                'and restricts nothing')
        assert note in server.read_log(), server.read_log()
        assert choice["message"]["content"] in ("yes", "no"), choice
        for form in ({"type": "xml"}, {"type": "json_schema"}, "json",
                     {"type": "json_schema", "json_schema": {
                         "schema": {"type": "text"}}},
                     {"type": "regex", "pattern": "("},
                     {"type": "grammar", "grammar": "x"},
                     {"type": "regex"}):
            error = server.post("/v1/completions", {
                "prompt": "a", "response_format": form}, 400)["error"]
            assert error["param"] == "response_format", error
        # What a form costs may show in mid-answer: a stream ends with the
        # error, any other reply is the error.
        text = "Once upon a time there was a wren"
        large = {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": 3000, "response_format": {
                "type": "regex", "pattern": text[:24] +
                "((((a|b|ab|ba|.){1,50}c?){1,50}d?){1,50}e?){1,50}"}}
        events = server.stream("/v1/chat/completions", large, ended=False)
        said = "".join(event["choices"][0]["delta"].get("content", "")
                       for event in events[:-1])
        assert said and text.startswith(said), events
        reply = server.post("/v1/chat/completions", large, 400)
        for error in (events[-1]["error"], reply["error"]):
            assert "in too many ways at once" in error["message"], error
            assert error["type"] == "invalid_request_error", error


def reasoning():
    said = "<think>\nHm.\n</think>\n\nYes"
    call = "<tool_call>add<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>"
    tools = [{"type": "function", "function": {"name": "add"}}]

    def ask(server, text, **more):
        body = {"messages": [{"role": "user", "content": text}], **more}
        reply = server.post("/v1/chat/completions", body)
        deltas = [event["choices"][0]["delta"] for event in
                  server.stream("/v1/chat/completions", body)]
        message = reply["choices"][0]["message"]
        for name in "reasoning_content", "content":
            assert "".join(delta.get(name) or "" for delta in deltas) == (
                message.get(name) or ""), (name, deltas, message)
        usage = reply["usage"]
        assert (usage["completion_tokens_details"]["reasoning_tokens"] > 0) == (
            "reasoning_content" in message), reply
        return message

    with serving.Server(parrot, "--chat-template=think.jinja") as server:
        message = ask(server, said)
        assert message["content"] == "Yes", message
        assert message["reasoning_content"] == "Hm.", message
        message = ask(server, "No <think>")
        assert message["content"] == "No <think>", message
        message = ask(server, "<think>Hm.</think>" + call, tools=tools)
        assert message["content"] is None, message
        assert message["reasoning_content"] == "Hm.", message
        assert message["tool_calls"][0]["function"] == {
            "name": "add", "arguments": '{"x":1}'}, message
        # A form from the first token on leaves no room for it.
        choice = ask(server, said, response_format={
            "type": "regex", "pattern": "(yes|no)"})
        assert choice["content"] in ("yes", "no"), choice
        # Clients send it back by either name, and templates have theirs.
        for name in "reasoning_content", "reasoning":
            reply = server.post("/v1/chat/completions", {"messages": [
                {"role": "assistant", "content": "a", name: "b"}]})
            message = reply["choices"][0]["message"]
            assert message["content"] == "a[b]", message
        for effort, thinks in ("none", "False"), ("high", "True"):
            message = ask(server, "a", reasoning_effort=effort)
            assert message["content"] == f"a/{effort}/{thinks}/{thinks}", message
        message = ask(server, "a", reasoning_effort="high",
                      chat_template_kwargs={"thinking": 5})
        assert message["content"] == "a/high/True/5", message
        error = server.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "a"}],
            "reasoning_effort": 3}, 400)["error"]
        assert error["param"] == "reasoning_effort", error
    # The template has opened it.
    with serving.Server(parrot, "--chat-template=opened.jinja") as server:
        text = 'Hm. {"a"</think>{"name": "Wren"}'
        form = {"type": "json_schema", "json_schema": {"schema": {
            "type": "object", "properties": {"name": {"type": "string"}},
            "required": ["name"], "additionalProperties": False}}}
        for more in {}, {"response_format": form}:
            message = ask(server, text, **more)
            assert message["content"] == '{"name": "Wren"}', message
            assert message["reasoning_content"] == 'Hm. {"a"', message
    with serving.Server(parrot, "--chat-template=channels.jinja") as server:
        message = ask(server, "<|channel|>analysis<|message|>Hm.<|end|><|start|>"
                              "assistant<|channel|>final<|message|>Yes")
        assert message["content"] == "Yes", message
        assert message["reasoning_content"] == "Hm.", message


serving.run([malformed_requests, refused_requests, keys_and_origins,
             connections, addresses, descriptors, slow_clients, long_replies,
             streamed_logprobs, full_server, hang_up, time_limit, stopping,
             json_log, embeddings, tools, messages_of_templates, forms,
             reasoning])
